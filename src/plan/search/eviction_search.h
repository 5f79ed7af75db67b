// Eviction by search, for small graphs of any shape: it needs no chain of blocks. Values are
// evicted only when the next node would not fit, and only values that it does not need. A partial
// plan is dominated if another has more values in memory after less time. Without its limits on
// effort the search would be exhaustive among plans that keep the order of nodes and recompute as
// late as possible.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"
#include "plan/search/search_limits.h"

namespace thimble {

struct EvictionPoint {
  Drops drops;
  Bytes peak;          // as StepMemoryModel estimates it
  double seconds = 0;  // of replays
};

// Points for a series of budgets, from `below` (the peak with everything kept) down until nothing
// is found. Empty for graphs that are too large.
std::vector<EvictionPoint> eviction_frontier(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits = {});

// Points for the smallest budgets that the search can meet.
std::vector<EvictionPoint> leanest_evictions(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits);

}  // namespace thimble
