// `update` and `update_8bit` for any rule. Rules are computed in Unfused numbers, so that they have
// the same bits as on any backend; what follows from a step's scalars is computed in floats.
#pragma once

#include "backend/cuda/update/rule_table.h"
#include "backend/cuda/update/state_blocks.cuh"
#include "backend/cuda/update/tabled_code.cuh"
#include "backend/cuda/update/update.cuh"
#include "ops/update/rule.h"
#include "ops/update/update_layout.h"

namespace thimble {

// A Step of update.cuh. Inputs w, g, the states, and with kCompensated what the rounding of w has
// left over; outputs without g.
template <class Rule, bool kCompensated>
struct RuleElement {
  static constexpr int kRuleStates = static_cast<int>(kStates<Rule>);
  static constexpr int kTensors = 2 + kRuleStates + (kCompensated ? 1 : 0);
  static constexpr int kOutputs = kTensors - 1;
  static constexpr int kRest = kCompensated ? kOutputs - 1 : 0;
  Rule rule;

  __device__ void begin(float rate, float number) { rule.begin(rate, number); }
  __device__ void operator()(const float (&in)[kTensors], float (&out)[kOutputs]) const {
    Unfused w(in[0]), state[kStateRoom<Rule>];
    if constexpr (kCompensated) w = w + Unfused(in[kTensors - 1]);
#pragma unroll
    for (int k = 0; k < kRuleStates; ++k) state[k] = Unfused(in[2 + k]);
    out[0] = rule.step(w, Unfused(in[1]), state).value;
#pragma unroll
    for (int k = 0; k < kRuleStates; ++k) out[1 + k] = state[k].value;
  }
};

template <class Rule>
Rule rule_from(const Signature& s) {
  return Rule(RuleSettings(s.attrs, Rule::kRule));
}

template <class Rule>
std::unique_ptr<Kernel> make_rule_update(const Signature& s, CudaDevice& device) {
  const int scalars = Rule::kRule.reads_step ? 2 : 1;
  if (is_compensated(s.attrs)) {
    return make_update(s, device, scalars, RuleElement<Rule, true>{rule_from<Rule>(s)});
  }
  return make_update(s, device, scalars, RuleElement<Rule, false>{rule_from<Rule>(s)});
}

// Inputs and outputs of update_8bit beside its rule. Null or without elements: not there.
template <size_t kCount>
struct BlockUpdate {
  Numbers w, g, rest, next_w, next_rest;
  CodedState states[kCount];
  const uint8_t* folded;  // codes of the gradient, in place of g
  const float* folded_scales;
  const float* rate;
  const float* number;
  int64_t count, stream;
  UpdateExtras extras;
};

// REQUIRES: load_code_room() before.
template <class Rule, size_t k>
using DeviceCode = std::conditional_t<
    !Rule::kRule.states[k].is_signed, TabledUnsignedCode,
    std::conditional_t<Rule::kRule.states[k].stochastic, DeviceSignedCode, TabledSignedCode>>;

// The states from number k on, of one block.
template <class Rule, size_t k = 0>
__device__ void decode_states(const CodedState* states, const LanePlace& place, LaneState* to) {
  if constexpr (k < kStates<Rule>) {
    to[k] =
        decode_state<DeviceCode<Rule, k>>(states[k].codes, states[k].scales[place.block], place);
    decode_states<Rule, k + 1>(states, place, to);
  }
}
template <class Rule, size_t k = 0>
__device__ void encode_states(const CodedState* states, const LanePlace& place,
                              const LaneState* from, const RandomStream& random) {
  if constexpr (k < kStates<Rule>) {
    using Code = DeviceCode<Rule, k>;
    if constexpr (Rule::kRule.states[k].stochastic) {
      encode_state<Code>(from[k], states[k].next, states[k].next_scales, place,
                         [&](int h) { return random_thresholds(random, place.quad(h)); });
    } else {
      encode_state<Code>(from[k], states[k].next, states[k].next_scales, place);
    }
    encode_states<Rule, k + 1>(states, place, from, random);
  }
}

// So many blocks of threads hide each other's latencies on a multiprocessor.
constexpr int kBlocksAtOnce = 4;

template <class Rule, bool kCompensated>
__global__ void __launch_bounds__(kBlockThreads, kBlocksAtOnce)
    update_blocks(const __grid_constant__ BlockUpdate<kStateRoom<Rule>> at,
                  const __grid_constant__ SignedLeast least, Rule rule) {
  const float factor = at.extras.gradient_factor();
  if (factor == 0) return;
  load_code_room(least);
  const UpdateRounding rounding = at.extras.rounding();
  const float number = at.number != nullptr ? *at.number : 0;
  rule.begin(*at.rate, number);
  const int64_t rng[] = {0, static_cast<int64_t>(number), 0};
  const RandomStream random(rng, at.stream);
  for_each_state_block(at.count, [&](const LanePlace& place) {
    LaneState states[kStateRoom<Rule>];
    decode_states<Rule>(at.states, place, states);
    LaneState weight = load_numbers(at.w, place);
    const LaneState gradient =
        kStates<Rule> == 0
            ? decode_state<DeviceSignedCode>(at.folded, at.folded_scales[place.block], place)
            : load_numbers(at.g, place);
    LaneState rest = {};
    if constexpr (kCompensated) rest = load_numbers(at.rest, place);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      Unfused w(weight.at[i]), state[kStateRoom<Rule>];
      if constexpr (kCompensated) w = w + Unfused(rest.at[i]);
#pragma unroll
      for (size_t k = 0; k != kStates<Rule>; ++k) state[k] = Unfused(states[k].at[i]);
      weight.at[i] = rule.step(w, Unfused(product(factor, gradient.at[i])), state).value;
#pragma unroll
      for (size_t k = 0; k != kStates<Rule>; ++k) states[k].at[i] = state[k].value;
    }
    if constexpr (kCompensated) {
      store_compensated(at.next_w, at.next_rest, place, weight);
    } else {
      store_weight(at.next_w, place, weight, rounding);
    }
    encode_states<Rule>(at.states, place, states, random);
  });
}

// All but the stream and the extras.
template <class Rule, bool kCompensated>
BlockUpdate<kStateRoom<Rule>> block_arguments(const KernelArgs& args) {
  constexpr UpdateLayout kAt = update_layout(Rule::kRule, true, kCompensated);
  BlockUpdate<kStateRoom<Rule>> at = {};
  at.count = args.inputs[0].elements();
  at.w = numbers_of(args.inputs[0]);
  at.next_w = numbers_of(args.outputs[0]);
  if constexpr (kCompensated) {
    at.rest = numbers_of(args.inputs[kAt.compensation]);
    at.next_rest = numbers_of(args.outputs[args.outputs.size() - 1]);
  }
  if constexpr (kAt.scales >= 0) {
    at.folded = args.inputs[1].template as<uint8_t>();
    at.folded_scales = args.inputs[kAt.scales].template as<float>();
  } else {
    at.g = numbers_of(args.inputs[1]);
  }
  for (size_t k = 0; k != kStates<Rule>; ++k) {
    at.states[k] = {args.inputs[2 + 2 * k].template as<uint8_t>(),
                    args.inputs[3 + 2 * k].template as<float>(),
                    args.outputs[1 + 2 * k].template as<uint8_t>(),
                    args.outputs[2 + 2 * k].template as<float>()};
  }
  at.rate = args.inputs[kAt.rate].template as<float>();
  if constexpr (kAt.number >= 0) at.number = args.inputs[kAt.number].template as<float>();
  return at;
}

template <class Rule, bool kCompensated>
std::unique_ptr<Kernel> make_block_update(const Signature& s, CudaDevice& device) {
  const UpdateLayout layout = update_layout(Rule::kRule, true, kCompensated);
  const ExtraInputs extras(s, static_cast<size_t>(layout.own));
  const int64_t stream = s.attrs.integer("stream", 0);
  const Rule rule = rule_from<Rule>(s);
  return own_kernel([&device, rule, stream, extras](const KernelArgs& args) {
    BlockUpdate<kStateRoom<Rule>> at = block_arguments<Rule, kCompensated>(args);
    if (at.count == 0) return;
    at.stream = stream;
    at.extras = extras.of(args);
    update_blocks<Rule, kCompensated>
        <<<grid_for_state(at.count, device), kBlockThreads, 0, device.stream>>>(at, signed_least(),
                                                                                rule);
    check_launch("update_8bit");
  });
}

template <class Rule>
std::unique_ptr<Kernel> make_rule_update_8bit(const Signature& s, CudaDevice& device) {
  const bool coded_gradient = kStates<Rule> == 0;
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  if (!coded_gradient && !on_device(s.inputs[1].dtype)) return nullptr;
  return is_compensated(s.attrs) ? make_block_update<Rule, true>(s, device)
                                 : make_block_update<Rule, false>(s, device);
}

}  // namespace thimble
