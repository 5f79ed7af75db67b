// update(w, g, state ..., [c,] lr f32 [1], [number f32 [1],] ...) -> (w, state ..., [c]) attrs rule
// (a file of rules/), the rule's hyper-parameters, weight_decay (0), rounding (nearest, stochastic,
// kahan), scaled, stream: see ops/update/update_layout.h. One step of any rule that is a function
// of single elements. With rounding `kahan` the rule works on w + c, and c becomes the remainder of
// rounding w' (Kahan summation). So steps too small for a 16-bit weight add up.
#include "ops/update/update.h"

#include "generated/update_rules.h"
#include "ops/update/rule_samples.h"

namespace thimble {
namespace {

UpdateLayout layout_of(const UpdateRule& rule, const Attrs& attrs) {
  return update_layout(rule, false, is_compensated(attrs));
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const UpdateLayout at = layout_of(checked_rule("update", attrs), attrs);
  check_update("update", inputs, static_cast<size_t>(at.tensors), static_cast<size_t>(at.own),
               attrs);
  std::vector<TensorType> outputs(inputs.begin() + 1, inputs.begin() + at.tensors);
  outputs[0] = inputs[0];
  return outputs;
}

void reference(const KernelArgs& args) {
  const UpdateRule& facts = checked_rule("update", *args.attrs);
  const UpdateLayout at = layout_of(facts, *args.attrs);
  run_update(args, static_cast<size_t>(at.own), [&]<class Real>(const UpdateElements<Real>& all) {
    with_update_rule<Real>(facts.name, [&]<class Rule>(TypeTag<Rule>) {
      Rule rule(RuleSettings(*args.attrs, facts));
      rule.begin(all.scalar(at.rate), all.scalar(at.number));
      for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
        Real state[kStateRoom<Rule>] = {};
        for (size_t k = 0; k < kStates<Rule>; ++k) state[k] = all.read(2 + k, i);
        Real w = all.read(0, i);
        if (at.compensation >= 0) w += all.read(static_cast<size_t>(at.compensation), i);
        const Real after = rule.step(w, all.gradient(i), state);
        all.write(0, i, after);
        for (size_t k = 0; k < kStates<Rule>; ++k) all.write(1 + k, i, state[k]);
        if (at.compensation >= 0) all.write_rest(1 + kStates<Rule>, i, after);
      }
    });
  });
}

Work work(const Signature& s) {
  const double flops =
      find_update_rule(s.attrs.text("rule", ""))->flops + (is_compensated(s.attrs) ? 3 : 0);
  return {flops * static_cast<double>(s.inputs[0].elements()), 0};
}

std::vector<Sample> samples() {
  return rule_samples(false, [](const UpdateRule& rule, const RuleSample& s) {
    Sample sample;
    add_input(sample, {s.shape, s.weight}, {});
    add_input(sample, {s.shape, s.gradient}, {});
    for (const RuleState& state : rule.states) {
      add_input(sample, {s.shape, state.like_gradient ? s.gradient : DType::f32},
                state.is_signed ? Fill{} : Fill{Fill::Kind::uniform, 0.1, 1});
    }
    return sample;
  });
}

}  // namespace

extern const OpDef op_update{
    .name = "update",
    .summary = "one step of an optimizer",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}, {3, 4}, {4, 5}},
};

}  // namespace thimble
