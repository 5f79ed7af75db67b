// The floor: the smallest plans that are found. Work is counted in FLOPs and bytes here, so the
// floor does not depend on measured times. Plans below it are ignored by every search.
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

// Each is smaller than the one before it, and there is at least one. Independent of the request's
// budget and times.
std::vector<SmallPlan> smallest_plans(const PlanRequest& request, const SearchLimits& limits = {});

// Costs by FLOPs and bytes written: the same on every machine.
Costs costs_by_work(const PlanRequest& request, double seconds_per_flop,
                    const SearchLimits& limits = {});

}  // namespace thimble
