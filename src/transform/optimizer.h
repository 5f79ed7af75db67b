// Turns gradients into updates: one node per weight, with the state it keeps. Over several microbatches
// gradients grow in place from zero, and weights are updated at the end of the step.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "transform/loss_scale.h"

namespace thimble {

// How an updated 16-bit weight is rounded. f32 weights (master ones among them) are as they are.
enum class Rounding : uint8_t {
  nearest,
  stochastic,  // up or down at random (Philox), right on average; momentum too
  kahan,       // to nearest; what is left over is kept, in the weight's type, and counts next time
};
std::string_view name_of(Rounding rounding);
Rounding parse_rounding(std::string_view name);

struct OptimizerSpec {
  enum class Kind : uint8_t { sgd, adam, adamw, adafactor } kind = Kind::sgd;
  double momentum = 0.9;  // sgd
  bool nesterov = false;  // sgd
  // Gradients are added straight into the momentum, so that no gradient tensor exists. The same
  // maths in another order of rounding. REQUIRES check_fold().
  bool fold = false;
  double weight_decay = 0;  // adamw, adafactor: decoupled
  double beta1 = 0.9;       // adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  int state_bits = 32;   // 8: momentum and moments in one byte a number, by blocks
  double clip_norm = 0;  // most that all gradients together may have as their norm; 0: any
  // Backward twice, for the norm and for the updates, in place of keeping every gradient.
  bool clip_two_pass = false;
  Rounding rounding = Rounding::nearest;
  LossScaling scaling;

  bool operator==(const OptimizerSpec&) const = default;
};

// "sgd" (heavy ball), "nesterov", "adam", "adamw", "adafactor", with each one's usual settings.
// UserError else.
OptimizerSpec parse_optimizer(std::string_view name);
std::string name_of(const OptimizerSpec& spec);

// UserError, saying what to choose instead, where gradients cannot be folded into the momentum.
void check_fold(const OptimizerSpec& spec);
// The same for everything in a spec that does not go together; includes check_fold.
void check_optimizer(const OptimizerSpec& spec, bool several_microbatches);

// The scalars that updates read, filled by the caller before each step.
struct OptimizerInputs {
  ValueId learning_rate;  // f32 [1]
  ValueId step;           // f32 [1], counts from 1; invalid when the optimizer does not read it
  ValueId rng;            // i64 [3] = seed, step, microbatch; invalid when nothing is random
  ValueId rounding_key;   // i64 [2] = seed, step; invalid unless rounding is stochastic
  ValueId loss_scale;     // f32 [1]; invalid unless it is dynamic
  ValueId overflow;       // a result, f32 [1]: above 0, the step was skipped; invalid likewise
};

// What each weight's gradient is taken of: the weight, or the 16-bit copy that everyone reads in
// place of an f32 one (ModelOptions::master), so that the gradient is 16-bit too.
std::vector<ValueId> differentiated(const Graph& graph, std::span<const ValueId> weights);

// Adds an update for every weight whose gradient is valid, for a step of one microbatch or several.
// `loss_scale` is what add_loss_scale made; `rng` is the model's, where it has one: an update that
// draws random bits makes one else. Momentum has the gradient's dtype, Adam's moments are f32: squares
// of gradients would leave fp16's range, and a thousandth of one is less than bf16 can add. Nodes of
// other phases than `each` are not in their places yet: see sort_by_phase.
OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches = false, ValueId loss_scale = {},
                            ValueId rng = {});

}  // namespace thimble
