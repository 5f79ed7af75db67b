// Transforms that move sums, each against the step that it was made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/check_graph.h"
#include "support/random_graph.h"

namespace thimble {

// A random graph with its backward nodes.
struct DifferentiatedGraph {
  Graph graph;
  std::vector<ValueId> gradients;  // of random.wrt
};

using Fault = std::optional<std::string>;

// The sums over three microbatches, of every gradient and result.
Fault check_accumulation(const RandomGraph& random, const DifferentiatedGraph& step, Tally& tally);
Fault check_taking_over(const RandomGraph& random, const DifferentiatedGraph& step, Tally& tally);
Fault check_peak_reducing_order(const RandomGraph& random, const DifferentiatedGraph& step);
// A step with updates, some of folding, clipping, scaling and microbatches chosen by the
// graph's seed; and a plan of it.
Fault check_training_step(const RandomGraph& random, Backend& backend, Tally& tally);

}  // namespace thimble
