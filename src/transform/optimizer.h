// Turns gradients into updates: one node per weight, with the state it keeps. Over several microbatches
// gradients grow in place from zero, and weights are updated at the end of the step.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace thimble {

struct OptimizerSpec {
  enum class Kind : uint8_t { sgd, adam, adamw } kind = Kind::sgd;
  double momentum = 0.9;      // sgd
  bool nesterov = false;      // sgd
  // Gradients are added straight into the momentum, so that no gradient tensor exists. The same
  // maths in another order of rounding. REQUIRES check_fold().
  bool fold = false;
  double weight_decay = 0;    // adamw: decoupled
  double beta1 = 0.9;         // adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;

  bool operator==(const OptimizerSpec&) const = default;
};

// "sgd" (heavy ball), "nesterov", "adam", "adamw", with each one's usual settings. UserError else.
OptimizerSpec parse_optimizer(std::string_view name);
std::string name_of(const OptimizerSpec& spec);

// UserError, saying what to choose instead, where gradients cannot be folded into the momentum.
void check_fold(const OptimizerSpec& spec);

// The scalars that updates read, filled by the caller before each step.
struct OptimizerInputs {
  ValueId learning_rate;  // f32 [1]
  ValueId step;           // f32 [1], counts from 1; invalid when the optimizer does not read it
};

// Adds an update for every weight whose gradient is valid, for a step of one microbatch or several.
// Nodes of other phases than `each` are not in their places yet: see sort_by_phase.
OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches = false);

}  // namespace thimble
