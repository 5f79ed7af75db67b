#include "sparse/proportional_allocation.h"

#include <algorithm>

#include "base/error.h"
#include "base/number/random_choice.h"

namespace thimble {

void allocate_in_proportion(int64_t total, std::span<const int64_t> shares,
                            std::span<const int64_t> room, PhiloxKey key, int64_t step,
                            std::span<int64_t> given) {
  std::fill(given.begin(), given.end(), 0);
  const auto has_room = [&](size_t i) { return given[i] < room[i]; };
  for (int64_t left = total; left > 0; ++key[1]) {
    int64_t sum = 0;
    for (size_t i = 0; i < given.size(); ++i) sum += has_room(i) ? shares[i] : 0;
    const int64_t whole = left;
    for (size_t i = 0; i < given.size() && sum > 0; ++i) {
      if (!has_room(i)) continue;
      const int64_t share = whole * shares[i] / sum;
      const int64_t taken = std::min(share, room[i] - given[i]);
      given[i] += taken;
      left -= taken;
    }
    int64_t takers = 0;
    for (size_t i = 0; i < given.size(); ++i) takers += has_room(i) ? 1 : 0;
    internal_check(left == 0 || takers > 0, "apportion: there is not enough room");
    if (left > takers && left < whole) continue;
    RandomChoice lucky(key, step, std::min(left, takers), takers);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!has_room(i) || !lucky.take()) continue;
      ++given[i];
      --left;
    }
  }
}

}  // namespace thimble
