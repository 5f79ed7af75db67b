// Evicts values that take almost no time to make from the step's inputs.
#pragma once

#include <vector>

#include "plan/search/eviction_search.h"
#include "plan/search/step_memory_model.h"

namespace thimble {

// Adds the points of least memory again, with no such value kept behind any stage. The gain is
// below the precision of StepMemoryModel, so peaks are not changed.
void add_cheap_evictions(const StepMemoryModel& memory, const SearchLimits& limits,
                         std::vector<EvictionPoint>& points);

}  // namespace thimble
