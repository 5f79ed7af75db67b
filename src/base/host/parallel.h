// Host work between steps, on several threads. (Kernels have threads of their own.)
#pragma once

#include <cstdint>
#include <functional>

namespace thimble {

// The part of for_ranges() that needs threads. REQUIRES: count > 0.
void for_ranges_on_threads(int64_t count, int64_t grain,
                           const std::function<void(int64_t begin, int64_t end)>& body);

// Calls body(begin, end) for ranges that together are [0, count), at most 16 at a time and no more
// than the machine has cores. Ranges begin at multiples of `grain`; work of one grain or less stays
// on the caller's thread and allocates nothing. REQUIRES: body does not throw, and may be called
// for several ranges at once.
template <class Body>
void for_ranges(int64_t count, int64_t grain, const Body& body) {
  if (count > grain) {
    for_ranges_on_threads(count, grain, std::ref(body));
  } else if (count > 0) {
    body(int64_t{0}, count);
  }
}

}  // namespace thimble
