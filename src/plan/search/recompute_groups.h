// Groups of values that take long to recompute, and so are worth keeping encoded.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// The forward values of `values` in groups, in order, each of one block of the forward pass
// (plan/schedule/chain.h): a block is recomputed as a whole or not at all. Blocks that take longest
// per byte of these values come first. A group of several values has at most an eighth of all
// bytes. Every value is in one group.
std::vector<std::vector<ValueId>> groups_by_recompute_time(const Graph& graph, const Costs& costs,
                                                           std::span<const ValueId> values);

}  // namespace thimble
