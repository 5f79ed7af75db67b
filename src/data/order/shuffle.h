// A pseudo-random order of [0, n) that needs no table: any element of it can be computed alone.
#pragma once

#include <cstdint>

namespace thimble {

// Where position `i` of epoch `epoch` points: for fixed (n, seed, epoch) a bijection of [0, n).
// REQUIRES: 0 <= i < n.
int64_t permuted(int64_t i, int64_t n, uint64_t seed, uint64_t epoch);

}  // namespace thimble
