// Optimizer updates: one node per weight, with its optimizer state. With several micro-batches,
// gradients are accumulated in place from zero, and weights are updated at the end of the step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/update_rule.h"
#include "transform/loss_scale.h"
#include "transform/shard.h"

namespace thimble {

// How an updated 16-bit weight is rounded. f32 weights (fp32 master weights among them) are not.
enum class Rounding : uint8_t {
  nearest,
  stochastic,  // up or down at random (Philox), right on average; momentum too
  kahan,  // to nearest; the remainder is kept, in the weight's type, and added at the next update
};
std::string_view name_of(Rounding rounding);
Rounding parse_rounding(std::string_view name);

// Which weights decay.
enum class DecayOn : uint8_t {
  all,
  matrices,  // weights with two axes or more, sparse or not: no bias, no scale of a normalisation
};
std::string_view name_of(DecayOn on);

struct OptimizerSpec {
  std::string name = "sgd";  // of a rule (graph/update_rule.h)
  // Hyper-parameters. A rule ignores the ones it does not read.
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  DecayOn decay_on = DecayOn::all;
  // Gradients are added straight into the momentum, so that no gradient tensor exists. The same
  // maths in another order of rounding. REQUIRES check_fold().
  bool fold = false;
  int state_bits = 32;   // 8: momentum and moments by blocks; 16: bf16, rounded at random
  double clip_norm = 0;  // largest global norm of the gradients; 0: no clipping
  // Two backward passes, for the norm and for the updates, instead of keeping every gradient.
  bool clip_two_pass = false;
  Rounding rounding = Rounding::nearest;
  LossScaling scaling;

  bool operator==(const OptimizerSpec&) const = default;
};

// The optimizer of that name, with its usual settings. UserError else.
OptimizerSpec parse_optimizer(std::string_view name);
// All names: "adam, adamw, ...".
std::string optimizer_names();

// A hyper-parameter of the optimizer, with its default in each rule that reads it.
struct HyperParameter {
  std::string_view flag, attr;  // the user's flag; the attr of updates
  double OptimizerSpec::*member;
  std::optional<double> (*usual)(
      const UpdateRule& rule);  // default; none: the rule does not read it
};
std::span<const HyperParameter> hyper_parameters();
// The defaults, for a flag's help: "0.9; lion: 0.99". `usual` as in HyperParameter.
std::string usual_values(std::optional<double> (*usual)(const UpdateRule& rule));
// The optimizer's default learning rate.
double usual_rate(const OptimizerSpec& spec);

// The rule that the spec names. REQUIRES: there is one.
const UpdateRule& rule_of(const OptimizerSpec& spec);

// The name, in the graph, of state that the weight's update keeps from step to step ("momentum").
std::string state_name(std::string_view weight, std::string_view state);

// The decay of one weight.
double decay_of(const Graph& graph, ValueId weight, const OptimizerSpec& spec);

// UserError with an alternative, where gradients cannot be folded into the momentum.
void check_fold(const OptimizerSpec& spec);
// The same for all combinations of settings; includes check_fold.
void check_optimizer(const OptimizerSpec& spec, bool several_microbatches);

// The scalars that updates read, filled by the caller before each step.
struct OptimizerInputs {
  ValueId learning_rate;  // f32 [1]
  ValueId step;           // f32 [1], counts from 1; invalid when the optimizer does not read it
  ValueId rng;            // i64 [3] = seed, step, microbatch; invalid when nothing is random
  ValueId rounding_key;   // i64 [2] = seed, step; invalid unless something is rounded at random
  ValueId loss_scale;     // f32 [1]; invalid unless it is dynamic
  ValueId overflow;       // a result, f32 [1]: above 0 if the step was skipped; invalid likewise
};

// By weight, the value to differentiate by: the weight itself, or the 16-bit copy that all nodes
// read in place of an fp32 master weight (mixed precision, ModelOptions::master). Then the gradient
// is 16-bit, too.
std::vector<ValueId> differentiated(const Graph& graph, std::span<const ValueId> weights);

// Adds an update for every weight whose gradient is valid, for a step of one microbatch or several.
// `loss_scale` is the result of add_loss_scale. `rng` is the model's, if it has one; an update that
// draws random bits adds one otherwise. Gradients are multiplied by a valid `loss_factor`
// (transform/loss_factor.h). `otherwise` applies to weights that gradients are not folded into.
// With several ranks, gradients are summed over them, and a rank updates its shards. Nodes of other
// phases than `per_microbatch` are not sorted yet: see sort_by_phase.
OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches = false, ValueId loss_scale = {},
                            ValueId rng = {}, ValueId loss_factor = {},
                            const WeightSettings& otherwise = {}, const RanksSpec& ranks = {});

// Shard sizes are multiples of so many elements: a line of 64 bytes in f32, or a block of 8-bit
// state.
int64_t shard_granularity(const OptimizerSpec& spec);

}  // namespace thimble
