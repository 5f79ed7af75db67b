// Best fit over time, as an allocator would do it that knows sizes but not the future.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layout/independent_parts.h"

namespace thimble {

// Each item, at its birth, takes the smallest hole that holds it, the lowest of equals; the top is
// raised only if none does. `backward` walks from the last slot to the first, with births and
// deaths exchanged. One offset per item.
std::vector<int64_t> first_fit_in_call_order(const Part& part, bool backward);

}  // namespace thimble
