// Numerics tiers: how far the results of a plan may differ from those of the plan that keeps
// everything.
#pragma once

#include <string_view>

#include "graph/graph.h"
#include "transform/optimizer.h"

namespace thimble {

enum class NumericsTier : uint8_t {
  exact,       // the bits of the plan that keeps everything
  equivalent,  // the same maths with other rounding (gradient accumulation, for one)
  // Other maths: statistics of a micro-batch instead of the batch's, mixed precision, 8-bit
  // optimizer state, sparse weights, lossy codecs.
  approximate,
};

std::string_view name_of(NumericsTier tier);
// UserError for another name.
NumericsTier parse_tier(std::string_view name);

// The tier of a step of `graph`. Planners never change a bit, so it depends on the graph alone.
NumericsTier tier_of(const Graph& graph, int microbatches, const OptimizerSpec& optimizer);

// UserError if the tier is above `allowed`. It names the setting at fault and an alternative.
void check_allowed(const Graph& graph, NumericsTier tier, NumericsTier allowed, int microbatches,
                   const OptimizerSpec& optimizer);

}  // namespace thimble
