// Values that are hardly worth keeping: they take next to no time to make from the step's inputs.
#pragma once

#include <vector>

#include "plan/search/eviction_search.h"
#include "plan/search/step_memory_model.h"

namespace thimble {

// The leanest points once more, with no such evictable value kept behind any stage. What is gained lies below the
// precision of StepMemoryModel, so peaks are left as they are.
void add_cheap_evictions(const StepMemoryModel& memory, const SearchLimits& limits,
                         std::vector<EvictionPoint>& points);

}  // namespace thimble
