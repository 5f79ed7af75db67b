// A training step as a graph: forward, backward and update, one stage after another.
#pragma once

#include <optional>
#include <vector>

#include "recipe/recipe.h"

namespace thimble {

// Gradient accumulation: with several micro-batches (of one rank, each of the model's rows),
// gradients and results are sums to which each micro-batch adds (transform/accumulate.h).
struct TrainingGraph {
  Model model;  // its graph is the whole step
  OptimizerInputs scalars;
  SparsitySpec sparsity;
};
TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks = {}, int microbatches = 1,
                                  const SparsitySpec& sparsity = {}, const CodecSpec& codec = {},
                                  const RanksSpec& ranks = {}, const FineTuning& tuning = {});

// The recipe's step, of micro-batches of that shape.
TrainingGraph make_graph(const Recipe& recipe, const StepShape& shape);

// The shapes of the step's micro-batches, the one that takes most memory first. Longer ones come
// before shorter ones, and full ones before a smaller last one. For batches by tokens, shapes with
// more tokens come first. The shape of the length with most tokens in a whole batch precedes all
// others.
std::vector<StepShape> step_shapes(const Recipe& recipe);

// The first of them.
StepShape largest_shape(const Recipe& recipe);

// The tier of the recipe's step, of that graph and with that codec. UserError above the tier that
// the recipe allows.
NumericsTier allowed_tier(const Recipe& recipe, const Graph& graph, const CodecSpec& codec);

}  // namespace thimble
