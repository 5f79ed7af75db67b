// Values that are hardly worth keeping: they take next to no time to make from the step's inputs.
#pragma once

#include <vector>

#include "plan/search/eviction_search.h"
#include "plan/search/stage_memory.h"

namespace thimble {

// The leanest points once more, with no such unit kept behind any stage. What is gained lies below the
// precision of StageMemory, so peaks are left as they are.
void add_lean_copies(const StageMemory& memory, std::vector<EvictionPoint>& points);

}  // namespace thimble
