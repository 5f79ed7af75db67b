// Which values are worth another way of being kept: those that take long to compute again.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// The forward values of `values` in groups, each made within one block of the forward pass (see
// plan/schedule/chain.h) and in order: where a block is to be recomputed, all of it is, so they share its fate.
// Groups of blocks that take longest per byte of these values come first. None has more than an eighth
// of all bytes, unless it is a single value. Every value is in one group.
std::vector<std::vector<ValueId>> groups_by_recompute_time(const Graph& graph, const Costs& costs,
                                                           std::span<const ValueId> values);

}  // namespace thimble
