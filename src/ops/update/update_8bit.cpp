// update_8bit(w, g, codes u8, scales f32 [blocks], ..., [c,] lr f32 [1], [number f32 [1],] ...)
//   -> (w, codes, scales, ..., [c])
// attrs as of `update`, and stream (Builder::next_random_stream) where the rule's state is rounded
// at random. `update` with each state in one byte a number (ops/update/block_state.h). The weight
// moves by the state as it is before it is encoded. Random rounding is a function of number and
// stream.
//   update_8bit(w, codes of g, [c,] lr f32 [1], scales of g, ...) -> (w, [c])
// for a rule that keeps nothing: the end of a step whose gradients are in the momentum already.
#include "base/number/random_stream.h"
#include "generated/update_rules.h"
#include "ops/update/block_state.h"
#include "ops/update/rule_samples.h"

namespace thimble {
namespace {

UpdateLayout layout_of(const UpdateRule& rule, const Attrs& attrs) {
  return update_layout(rule, true, is_compensated(attrs));
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const UpdateRule& rule = checked_rule("update_8bit", attrs);
  const UpdateLayout at = layout_of(rule, attrs);
  check_extras("update_8bit", inputs, static_cast<size_t>(at.own), attrs);
  const bool folded = at.scales >= 0;
  check_like_weight("update_8bit", inputs, folded ? 1 : 2);
  if (folded) {
    const TensorType& scales = inputs[static_cast<size_t>(at.scales)];
    check_block_state("update_8bit", "folded gradient", inputs[1], scales, inputs[0]);
  }
  for (size_t k = 0; k < rule.states.size(); ++k) {
    check_block_state("update_8bit", rule.states[k].name, inputs[2 + 2 * k], inputs[3 + 2 * k],
                      inputs[0]);
  }
  if (at.compensation >= 0) {
    check_type("update_8bit",
               "what rounding left over:", inputs[static_cast<size_t>(at.compensation)], inputs[0]);
  }
  const int scalars_end = folded ? at.scales : at.own;
  check_scalars("update_8bit", inputs, static_cast<size_t>(at.rate),
                static_cast<size_t>(scalars_end));
  if (rounds_some_state_at_random(rule)) {
    user_check(inputs[0].elements() <= kMaxRandomElements, "[update_8bit] {} has too many elements",
               to_string(inputs[0]));
    attrs.integer("stream");
  }
  std::vector<TensorType> outputs(inputs.begin() + 1, inputs.begin() + at.tensors);
  outputs[0] = inputs[0];
  return outputs;
}

// The block of each of a rule's states, while it is worked on.
using StateBlocks = std::array<StateBlock, 3>;

void decode_state(const KernelArgs& args, const RuleState& state, size_t input, int64_t block,
                  int64_t count, StateBlock& to) {
  const uint8_t* codes = args.inputs[input].as<uint8_t>() + block * kCodeBlock;
  const float scale = args.inputs[input + 1].as<float>()[block];
  if (state.is_signed) {
    decode_block<SignedCode>(codes, scale, count, to.data());
  } else {
    decode_block<UnsignedCode>(codes, scale, count, to.data());
  }
}

void encode_state(const KernelArgs& args, const RuleState& state, size_t output, int64_t block,
                  int64_t count, const StateBlock& from, const RandomStream& random) {
  StateBlock thresholds;
  thresholds.fill(0.5f);
  if (state.stochastic) random.uniform(block * kCodeBlock, thresholds);
  const auto threshold = [&](int64_t i) { return thresholds[static_cast<size_t>(i)]; };
  uint8_t* codes = args.outputs[output].as<uint8_t>() + block * kCodeBlock;
  args.outputs[output + 1].as<float>()[block] =
      state.is_signed ? encode_block<SignedCode>(from.data(), count, codes, threshold)
                      : encode_block<UnsignedCode>(from.data(), count, codes, threshold);
}

// One step on a block: `gradient` is that of its element i.
template <class Real, class Rule, class Gradient>
void move_block(const UpdateElements<Real>& all, const UpdateLayout& at, const Rule& rule,
                int64_t first, int64_t count, const Gradient& gradient, StateBlocks& blocks) {
  for (int64_t i = 0; i < count; ++i) {
    Real state[kStateRoom<Rule>] = {};
    for (size_t k = 0; k < kStates<Rule>; ++k) {
      state[k] = static_cast<Real>(blocks[k][static_cast<size_t>(i)]);
    }
    Real w = all.read(0, first + i);
    if (at.compensation >= 0) w += all.read(static_cast<size_t>(at.compensation), first + i);
    const Real after = rule.step(w, gradient(i), state);
    all.write(0, first + i, after);
    for (size_t k = 0; k < kStates<Rule>; ++k) {
      blocks[k][static_cast<size_t>(i)] = static_cast<float>(state[k]);
    }
    if (at.compensation >= 0) all.write_rest(1 + 2 * kStates<Rule>, first + i, after);
  }
}

void reference(const KernelArgs& args) {
  const UpdateRule& facts = checked_rule("update_8bit", *args.attrs);
  const UpdateLayout at = layout_of(facts, *args.attrs);
  run_update(args, static_cast<size_t>(at.own), [&]<class Real>(const UpdateElements<Real>& all) {
    with_update_rule<Real>(facts.name, [&]<class Rule>(TypeTag<Rule>) {
      Rule rule(RuleSettings(*args.attrs, facts));
      rule.begin(all.scalar(at.rate), all.scalar(at.number));
      const int64_t rng[] = {0, static_cast<int64_t>(all.scalar(at.number)), 0};
      const RandomStream random(rng, args.attrs->integer("stream", 0));
      for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
        StateBlocks blocks;
        if (at.scales >= 0) {  // decoded as a signed state would be
          decode_block<SignedCode>(args.inputs[1].as<uint8_t>() + first,
                                   args.inputs[static_cast<size_t>(at.scales)].as<float>()[block],
                                   count, blocks[0].data());
          const StateBlock folded = blocks[0];
          move_block(
              all, at, rule, first, count,
              [&](int64_t i) { return all.scaled(folded[static_cast<size_t>(i)]); }, blocks);
          return;
        }
        for (size_t k = 0; k < facts.states.size(); ++k) {
          decode_state(args, facts.states[k], 2 + 2 * k, block, count, blocks[k]);
        }
        move_block(
            all, at, rule, first, count, [&](int64_t i) { return all.gradient(first + i); },
            blocks);
        for (size_t k = 0; k < facts.states.size(); ++k) {
          encode_state(args, facts.states[k], 1 + 2 * k, block, count, blocks[k], random);
        }
      });
    });
  });
}

Work work(const Signature& s) {
  const UpdateRule& rule = *find_update_rule(s.attrs.text("rule", ""));
  const double flops =
      rule.flops + 24 * static_cast<double>(rule.states.size()) + (is_compensated(s.attrs) ? 3 : 0);
  return {flops * static_cast<double>(s.inputs[0].elements()), 0};
}

std::vector<Sample> samples() {
  return rule_samples(true, [](const UpdateRule& rule, const RuleSample& s) {
    Sample sample;
    const UpdateLayout at = layout_of(rule, s.attrs);
    const TensorType codes = {s.shape, DType::u8}, scales = {{code_blocks(s.shape.elements())}};
    add_input(sample, {s.shape, s.weight}, {});
    if (at.scales >= 0) {
      add_input(sample, codes, kAnyCodes);
    } else {
      add_input(sample, {s.shape, s.gradient}, {});
    }
    for (size_t k = 0; k < rule.states.size(); ++k) {
      add_input(sample, codes, kAnyCodes);
      add_input(sample, scales, kAnyScales);
    }
    return sample;
  });
}

}  // namespace

extern const OpDef op_update_8bit{
    .name = "update_8bit",
    .summary = "one step of an optimizer, state in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}},
};

}  // namespace thimble
