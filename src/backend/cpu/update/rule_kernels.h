// The loops of `update` and `update_8bit`, for any rule (ops/update/rule.h). rule_kernels.cpp.in
// becomes one source per rule, which compiles them for every instruction set.
#pragma once

#include "backend/cpu/update/state_blocks.h"
#include "ops/update/rule.h"
#include "ops/update/update_layout.h"

namespace thimble {

struct CpuRuleKernels {
  std::string_view rule;
  RangeLoop update, update_kahan;
  BlockLoop update_8bit, update_8bit_kahan;
};

// The generated table of rules with kernels (definitions live in the build folder).
std::span<const CpuRuleKernels* const> all_cpu_rules();
const CpuRuleKernels& cpu_rule(const UpdateRule& rule);

// The rule with the scalars of this step. A copy whose address nobody has seen: loops keep what is
// in it in registers.
template <class Rule>
THIMBLE_INLINE Rule begun_rule(const KernelArgs& args, const UpdateLayout& at) {
  const auto scalar = [&](int input) {
    return input < 0
               ? 0.0
               : static_cast<double>(*args.inputs[static_cast<size_t>(input)].as<const float>());
  };
  Rule rule(RuleSettings(*args.attrs, Rule::kRule));
  rule.begin(scalar(at.rate), scalar(at.number));
  return rule;
}

// update: elements [begin, end), in f32. With kKahan the wide weight goes to the weight and to the
// compensation; finish_compensated makes of them what belongs there.
template <class Rule, bool kKahan>
THIMBLE_INLINE void update_range(const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr UpdateLayout kAt = update_layout(Rule::kRule, false, kKahan);
  const Rule made = begun_rule<Rule>(args, kAt);
  const Rule rule = made;
  const float factor = gradient_factor(args, kAt.own);
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* c_before = args.inputs[kAt.rate - 1].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* c_after = args.outputs.back().as<float>();
  const float* before[kStateRoom<Rule>] = {};
  float* after[kStateRoom<Rule>] = {};
  for (size_t k = 0; k < kStates<Rule>; ++k) {
    before[k] = args.inputs[2 + k].as<const float>();
    after[k] = args.outputs[1 + k].as<float>();
  }
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    float state[kStateRoom<Rule>] = {};
    for (size_t k = 0; k < kStates<Rule>; ++k) state[k] = before[k][i];
    const float w = kKahan ? w_before[i] + c_before[i] : w_before[i];
    const float moved = rule.step(w, gradient[i] * factor, state);
    w_after[i] = moved;
    for (size_t k = 0; k < kStates<Rule>; ++k) after[k][i] = state[k];
    if (kKahan) c_after[i] = moved;
  }
}

// The states from number k on, of one block, each in a row of `room`.
template <class Rule, size_t k = 0>
THIMBLE_INLINE void decode_states(const KernelArgs& args, int64_t block, int64_t count,
                                  float (*room)[kCodeBlock]) {
  if constexpr (k < kStates<Rule>) {
    using Code = std::conditional_t<Rule::kRule.states[k].is_signed, SignedCode, UnsignedCode>;
    decode_block<Code>(args.inputs[2 + 2 * k].as<const uint8_t>() + block * kCodeBlock,
                       args.inputs[3 + 2 * k].as<const float>()[block], count, room[k]);
    decode_states<Rule, k + 1>(args, block, count, room);
  }
}
template <class Rule, size_t k = 0>
THIMBLE_INLINE void encode_states(const KernelArgs& args, int64_t block, int64_t count,
                                  float (*room)[kCodeBlock], const RandomStream& random) {
  if constexpr (k < kStates<Rule>) {
    using Code = std::conditional_t<Rule::kRule.states[k].is_signed, SignedCode, UnsignedCode>;
    uint8_t* codes = args.outputs[1 + 2 * k].as<uint8_t>() + block * kCodeBlock;
    float& scale = args.outputs[2 + 2 * k].as<float>()[block];
    if constexpr (Rule::kRule.states[k].stochastic) {
      uint32_t words[kCodeBlock];
      block_words(random, block * kCodeBlock, words);
      scale = encode_block<Code>(room[k], count, codes,
                                 [&words](int64_t i) { return uniform_of(words[i]); });
    } else {
      scale = encode_block<Code>(room[k], count, codes);
    }
    encode_states<Rule, k + 1>(args, block, count, room, random);
  }
}

// update_8bit: blocks [begin, end), each decoded, moved and encoded in cache.
template <class Rule, bool kKahan>
THIMBLE_INLINE void update_blocks(const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr UpdateLayout kAt = update_layout(Rule::kRule, true, kKahan);
  const Rule made = begun_rule<Rule>(args, kAt);
  const Rule rule = made;
  const float factor = gradient_factor(args, kAt.own);
  const int64_t number =
      kAt.number < 0 ? 0 : static_cast<int64_t>(*args.inputs[kAt.number].as<const float>());
  const int64_t rng[] = {0, number, 0};
  const RandomStream random(rng, args.attrs->integer("stream", 0));
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    float w_room[kCodeBlock], g_room[kCodeBlock], c_room[kCodeBlock];
    float state_room[kStateRoom<Rule>][kCodeBlock];
    const float* w_before = as_f32(args.inputs[0], first, count, w_room);
    const float* c_before =
        kKahan ? as_f32(args.inputs[kAt.rate - 1], first, count, c_room) : w_before;
    const float* gradient = g_room;
    if constexpr (kAt.scales >= 0) {
      decode_block<SignedCode>(args.inputs[1].as<const uint8_t>() + first,
                               args.inputs[kAt.scales].as<const float>()[block], count, g_room);
    } else {
      gradient = as_f32(args.inputs[1], first, count, g_room);
    }
    float* w_after = room_for(args.outputs[0], first, w_room);
    decode_states<Rule>(args, block, count, state_room);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      float state[kStateRoom<Rule>] = {};
      for (size_t k = 0; k < kStates<Rule>; ++k) state[k] = state_room[k][i];
      const float w = kKahan ? w_before[i] + c_before[i] : w_before[i];
      w_after[i] = rule.step(w, gradient[i] * factor, state);
      for (size_t k = 0; k < kStates<Rule>; ++k) state_room[k][i] = state[k];
    }
    commit_weights(args, w_after, first, count);
    if (kKahan) finish_compensated(args, args.outputs.size() - 1, w_after, first, count);
    encode_states<Rule>(args, block, count, state_room, random);
  }
}

}  // namespace thimble
