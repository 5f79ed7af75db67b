// A training step as a graph: forward, backward and update, one stage after another.
#pragma once

#include <optional>
#include <vector>

#include "recipe/recipe.h"

namespace thimble {

// Over several microbatches (of one rank), of the model's rows each, gradients and results are sums that
// grow with every one.
struct TrainingGraph {
  Model model;  // its graph is the whole step
  OptimizerInputs scalars;
  SparsitySpec sparsity;
};
TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks = {}, int microbatches = 1,
                                  const SparsitySpec& sparsity = {}, const CodecSpec& codec = {},
                                  const RanksSpec& ranks = {}, const FineTuning& tuning = {});

// The recipe's step, of microbatches of that shape.
TrainingGraph make_graph(const Recipe& recipe, const StepShape& shape);

// The shapes of the step's micro-batches, the one that takes most memory first. Longer ones come before
// shorter ones, and of each length full ones before a smaller last one. Of batches by tokens, the length
// whose whole batch has most tokens comes first, then lengths by their tokens.
std::vector<StepShape> step_shapes(const Recipe& recipe);

// The first of them.
StepShape largest_shape(const Recipe& recipe);

// The tier of the recipe's step, of that graph and with that codec. UserError above what it allows.
NumericsTier allowed_tier(const Recipe& recipe, const Graph& graph, const CodecSpec& codec);

}  // namespace thimble
