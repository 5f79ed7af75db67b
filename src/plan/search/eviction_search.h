// What to drop when memory runs out: a search over small graphs of any shape, where no chain of
// blocks is needed. Dropping is only ever decided when the next node would not fit, and then among
// whatever is not needed right now; of two partial plans, one that has more at hand for less
// time makes the other useless. Without its limits on effort that would be exhaustive (among plans that keep
// the order of nodes and compute again as late as possible).
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"
#include "plan/search/search_limits.h"

namespace thimble {

struct EvictionPoint {
  Drops drops;
  Bytes peak;          // by the figures of StepMemoryModel
  double seconds = 0;  // of replays
};

// Points for one budget after the other, from `below` (what keeping everything takes) down to where
// nothing is found. Empty for graphs that are too large.
std::vector<EvictionPoint> eviction_frontier(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits = {});

// Points for the least budgets that have an answer.
std::vector<EvictionPoint> leanest_evictions(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits);

}  // namespace thimble
