// Drops less where there is room. A schedule's live bytes reach their peak at some calls only; at
// the others, results may stay that it drops and computes again.
//
//   live │      ____ peak
//        │    _/    \____   . . . . .
//        │  _/           \_a_________b__    v was dropped behind a and made again at b: it stays
//        └─────────────────────────────▶ call
#pragma once

#include "plan/make_plan.h"
#include "plan/search/search_limits.h"

namespace thimble {

// The schedule without some of its repetitions: whatever stays in their place fits below the live
// peak that the schedule has anyway, so many percent of which are left free. Never slower. What is
// marked to be computed again still is.
Schedule drop_redundant_recomputes(const PlanRequest& request, Schedule schedule,
                                   int percent_left = 0, const SearchLimits& limits = {});

}  // namespace thimble
