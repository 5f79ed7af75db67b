// An optimizer's rule is one record in one file of src/ops/update/rules, which also has the
// arithmetic of one element (ops/update/rule.h). The transform that adds updates, flags and error
// sentences know rules only through this record, so a new optimizer is one new file. How weights
// and state are stored is no part of a rule: the ops `update` and `update_8bit` run every rule on
// every storage.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace thimble {

// A tensor that a rule keeps from step to step, of the weight's shape.
struct RuleState {
  std::string_view name = {};
  bool like_gradient = false;  // stored in the gradient's dtype; else f32
  bool is_signed = true;       // false: never negative, divided by: in 8 bits above zero stays so
  // In 8 bits: a step may change it by less than the distance of two levels, so that it is rounded
  // at random, right on average; else to the nearest.
  bool stochastic = false;
};

class RuleStates {
 public:
  constexpr RuleStates() = default;
  constexpr RuleStates(std::initializer_list<RuleState> states) {
    for (const RuleState& state : states) all_[count_++] = state;
  }
  constexpr size_t size() const { return count_; }
  constexpr const RuleState& operator[](size_t k) const { return all_[k]; }
  constexpr const RuleState* begin() const { return all_.data(); }
  constexpr const RuleState* end() const { return all_.data() + count_; }

 private:
  std::array<RuleState, 3> all_ = {};
  size_t count_ = 0;
};

struct UpdateRule {
  std::string_view name;  // = file name = what users type
  std::string_view summary;
  double rate = 0.1;  // the usual learning rate
  // Hyper-parameters with their usual values; none: the rule does not read it.
  std::optional<double> momentum = {}, beta1 = {}, beta2 = {}, epsilon = {};
  double weight_decay = 0;
  RuleStates states = {};
  bool reads_step = false;  // the step's number, from 1 on
  double flops = 4;         // of an element
  // Gradients can be added straight into the one state: m' = momentum m + weight_decay w + their
  // sum, and then w moves as by `without_momentum`, m' being the gradient.
  bool folds = false;
  std::string_view without_momentum =
      {};                 // the rule at momentum 0, which keeps nothing; empty: none
  bool internal = false;  // stands in for others; nobody asks for it by name
  // A rule that is no function of single elements has an op of its own. It keeps its states of
  // weights with two axes or more: a number per row, and one per column; of others `of_vectors`.
  std::string_view op = {};
  RuleStates of_vectors = {};
};

// The generated table of src/ops/update/rules, in name order (definitions live in the build
// folder).
std::span<const UpdateRule* const> all_update_rules();
// Null when there is no such rule.
const UpdateRule* find_update_rule(std::string_view name);

// Exceptions for updates of some weights, by name: a factor on the learning rate, a decay in place
// of the optimizer's.
struct WeightSetting {
  double rate = 1;
  std::optional<double> decay = {};
};
using WeightSettings = std::map<std::string, WeightSetting, std::less<>>;

}  // namespace thimble
