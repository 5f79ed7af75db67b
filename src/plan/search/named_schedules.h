// Schedules that depend on a step's graph alone, not on its kernels' times and not on the budget.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/schedule/chain.h"
#include "plan/search/search_limits.h"

namespace thimble {

// The schedules of all policies that share memory and ignore the budget.
std::vector<Schedule> schedules_of_policies(const PlanRequest& request);

// Segments whose insides are halved recursively, from two segments to many (one is log_recursive).
std::vector<Schedule> halvings(const ForwardPass& pass, const std::vector<Block>& blocks,
                               const SearchLimits& limits);

// How many schedules to try for a graph with so many nodes: `most` for a small one, fewer for a
// large one, at least `least`.
size_t affordable(size_t nodes, size_t least, size_t most, const SearchLimits& limits);

// Whether the eviction search runs: in a small net, and where a chain of blocks describes the net
// poorly, since one block is a large part of it.
bool worth_evicting(const ForwardPass& pass, const std::vector<Block>& blocks,
                    const SearchLimits& limits);

}  // namespace thimble
