// Reduces the peak of a given schedule: values that are live at the peak without being used there
// are dropped before it and recomputed after it.
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

// Each has a lower live peak than the one before it, the first than `start`. Marks are honoured.
// Tries at most `tries` schedules, and subtracts those it tried. Empty if nothing is found.
std::vector<ReducedPeak> reduced_peaks(const ForwardPass& pass, const PlanRequest& request,
                                       const Schedule& start, int& tries,
                                       const SearchLimits& limits = {});

}  // namespace thimble
