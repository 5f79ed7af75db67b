// How far the results of a plan may differ from those of the plan that keeps everything.
#pragma once

#include <string_view>

#include "graph/graph.h"
#include "transform/optimizer.h"

namespace thimble {

enum class NumericsTier : uint8_t {
  exact,       // the bits of the plan that keeps everything
  equivalent,  // the same maths, rounded otherwise
  // Other maths: statistics of a microbatch for the batch's, 16-bit numbers, 8-bit state, sparse
  // weights, lossy codecs.
  approximate,
};

std::string_view name_of(NumericsTier tier);
// UserError for another name.
NumericsTier parse_tier(std::string_view name);

// Of a step of `graph`; planners never change a bit, so it is the graph's alone.
NumericsTier tier_of(const Graph& graph, int microbatches, const OptimizerSpec& optimizer);

// UserError, naming what goes beyond and what to choose instead, when the tier is above `allowed`.
void check_allowed(const Graph& graph, NumericsTier tier, NumericsTier allowed, int microbatches,
                   const OptimizerSpec& optimizer);

}  // namespace thimble
