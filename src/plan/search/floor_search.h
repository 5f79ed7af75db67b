// The smallest plans that are found, by bytes alone: work is counted in FLOPs and bytes, so that a floor is the same
// number whatever the step's kernels were measured to take. No plan below it counts, in any search.
//
//   bytes │ ●  the smallest schedule of every policy, of segments, halvings and evictions
//         │  ●
//         │   ●   then that reduced, move by move (plan/search/reduce_peak.h): each smaller, and slower
//         │    ●  the floor
#pragma once

#include <vector>

#include "plan/make_plan.h"
#include "plan/schedule/chain.h"
#include "plan/search/search_limits.h"

namespace thimble {

struct SmallPlan {
  Schedule schedule;
  Bytes arena;
};

// Each smaller than the one before it; one at least. The request's budget and times are not looked at.
std::vector<SmallPlan> smallest_plans(const PlanRequest& request, const SearchLimits& limits = {});

// Times by FLOPs and bytes made: the same on every machine.
Costs costs_by_work(const PlanRequest& request, double seconds_per_flop,
                    const SearchLimits& limits = {});

}  // namespace thimble
