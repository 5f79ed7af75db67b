// Online best fit: places buffers as an allocator would, without knowledge of later calls.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layout/independent_parts.h"

namespace thimble {

// At its first slot, each item takes the smallest hole that holds it, the lowest of equal ones. If
// none does, the arena grows. `backward` walks from the last slot to the first. Returns one
// offset per item.
std::vector<int64_t> best_fit_in_call_order(const Part& part, bool backward);

}  // namespace thimble
