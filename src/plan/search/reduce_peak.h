// Schedules that take less memory than one at hand: whatever only waits while most is in use is
// dropped before, and computed again behind it.
#pragma once

#include <vector>

#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"
#include "plan/search/search_limits.h"

namespace thimble {

struct ReducedPeak {
  Schedule schedule;
  ScheduleCost cost;
};

// Each with a lower live peak than the one before it, the first with a lower one than `start`, marks
// heeded; none where nothing is found. `tries` schedules are looked at, at most, and taken off it.
std::vector<ReducedPeak> reduced_peaks(const ForwardPass& pass, const PlanRequest& request,
                                       const Schedule& start, int& tries,
                                       const SearchLimits& limits = {});

}  // namespace thimble
