// Samples of every rule on every storage, for the conformance tests of update and update_8bit.
#pragma once

#include "base/number/dynamic_quantization.h"
#include "ops/update/update.h"

namespace thimble {

// The tensors of a sample.
struct RuleSample {
  Shape shape;
  double number = 1;  // of the step
  DType weight = DType::f32, gradient = DType::f32;
  Attrs attrs = {};
  bool extras = false;  // a factor, and rounding at random
};

inline void add_input(Sample& sample, TensorType type, Fill fill) {
  sample.inputs.push_back(std::move(type));
  sample.fills.push_back(fill);
}

// Adds what follows the rule's states.
inline Sample with_scalars(Sample sample, const RuleSample& s, const UpdateLayout& at) {
  if (at.compensation >= 0) add_input(sample, {s.shape, s.weight}, {Fill::Kind::zeros});
  add_input(sample, {{1}}, {Fill::Kind::uniform, 0.01, 0.1});
  if (at.number >= 0) add_input(sample, {{1}}, {Fill::Kind::uniform, s.number, s.number});
  if (at.scales >= 0) {
    add_input(sample, {{code_blocks(s.shape.elements())}}, {Fill::Kind::uniform, 0.1, 1});
  }
  sample.attrs = s.attrs;
  return s.extras ? with_extras(std::move(sample)) : std::move(sample);
}

// tensors(rule, s): the sample's weight, gradient and state. coded: as in update_layout.
template <class Tensors>
std::vector<Sample> rule_samples(bool coded, const Tensors& tensors) {
  std::vector<Sample> result;
  for (const UpdateRule* rule : all_update_rules()) {
    if (!rule->op.empty()) continue;
    const auto add = [&](RuleSample s, double weight_decay, const char* rounding = "nearest") {
      s.attrs = {{"rule", std::string(rule->name)},
                 {"weight_decay", weight_decay},
                 {"rounding", std::string(rounding)},
                 {"stream", int64_t{7}}};
      if (rule->beta2) s.attrs.set("beta2", 0.95);
      const UpdateLayout at = update_layout(*rule, coded, is_compensated(s.attrs));
      result.push_back(with_scalars(tensors(*rule, s), s, at));
    };
    add({.shape = {5, 7}}, 0);
    add({.shape = {333}, .number = 10}, 0.01);
    // With these numbers none lies on the border of two codes: they are the same in any arithmetic.
    add({.shape = {16, 3, 3, 8}, .number = 1000, .gradient = DType::f16}, 0.05);
    const Shape some = coded ? Shape{16, 3, 3, 8} : Shape{2, 3, 3, 8};
    add({.shape = some, .number = 3, .gradient = DType::f16, .extras = true}, 0.05);
    add({.shape = {5, 7}, .weight = DType::bf16}, 0, "kahan");
    add({.shape = {40, 8}, .number = 1000, .weight = DType::bf16}, 0.1, "kahan");
  }
  return result;
}

}  // namespace thimble
