// Undoes recomputations where memory is free. A schedule's live bytes reach their peak at few
// calls. During the others, values that it drops and recomputes may stay.
//
//   live │      ____ peak
//        │    _/    \____   . . . . .
//        │  _/           \_a_________b__    v was dropped after a and recomputed at b: it stays
//        └─────────────────────────────▶ call
#pragma once

#include "plan/make_plan.h"
#include "plan/search/search_limits.h"

namespace thimble {

// The schedule without its redundant recomputations: the values that stay instead fit below its
// live peak, `percent_left` of which is left free. Never slower. Values marked `recompute` are
// still recomputed.
Schedule drop_redundant_recomputes(const PlanRequest& request, Schedule schedule,
                                   int percent_left = 0, const SearchLimits& limits = {});

}  // namespace thimble
