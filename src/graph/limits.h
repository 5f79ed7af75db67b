// How large graphs may be.
#pragma once

#include <cstdint>

namespace thimble {

// Values of a graph, at most: some times as many as steps that are planned in minutes have. A step
// beyond is refused while it is being built, before it fills the memory.
inline constexpr int64_t kMostValues = int64_t{1} << 20;

}  // namespace thimble
