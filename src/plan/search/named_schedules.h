// Schedules that depend on a step's graph alone, whatever its kernels take and whatever the budget is.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/schedule/chain.h"
#include "plan/search/search_limits.h"

namespace thimble {

// Those of all policies that share memory and go by no budget.
std::vector<Schedule> schedules_of_policies(const PlanRequest& request);

// Segments whose insides are halved recursively, from two segments to many (one is log_recursive).
std::vector<Schedule> halvings(const ForwardPass& pass, const std::vector<Block>& blocks,
                               const SearchLimits& limits);

// How many schedules of a graph of so many nodes are worth looking at, if `most` are for a small one.
size_t affordable(size_t nodes, size_t least, size_t most, const SearchLimits& limits);

// Whether what to drop is searched for value by value: in a small net, and where a chain of blocks is a poor
// picture of it, since one block is much of it.
bool worth_evicting(const ForwardPass& pass, const std::vector<Block>& blocks,
                    const SearchLimits& limits);

}  // namespace thimble
