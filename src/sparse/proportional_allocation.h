// Splitting a number of like things fairly.
#pragma once

#include <cstdint>
#include <span>

#include "base/number/philox.h"

namespace thimble {

// Gives `total` units to takers in proportion to their shares, none more than it has room for.
// Whole shares come first. The rest goes to takers at random, one unit each, and units that a taker
// has no room for go to the others in the same way. Without those, none is a whole unit off its
// exact share. REQUIRES: the spans are of one size, the room is `total` at least, and no number is
// 2^31 or more. Allocates nothing.
void allocate_in_proportion(int64_t total, std::span<const int64_t> shares,
                            std::span<const int64_t> room, PhiloxKey key, int64_t step,
                            std::span<int64_t> given);

}  // namespace thimble
