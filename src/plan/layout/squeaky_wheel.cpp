// Lets the buffers that end too high go first. Places the buffers in several good orders; then,
// from the best of them, repeats: whoever ends above the target moves up in the order, and all are
// placed again. Small changes of the order move what lies near the peak and leave the rest alone.
#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/layout/best_fit_in_call_order.h"
#include "plan/layout/layout_limits.h"
#include "plan/layout/place_in_order.h"
#include "plan/packer.h"

namespace thimble {
namespace {

// SplitMix64: the spread of jumps needs variety, not quality.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Attempt {
  std::vector<int> order;
  Placement placed;
};

// Lowest first: first fit in this order puts nobody higher than before.
std::vector<int> order_by_offset(std::span<const int64_t> offsets) {
  std::vector<int> order(offsets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return offsets[a] < offsets[b]; });
  return order;
}

// The order of `from` with everyone who ends above `target` moved to a random earlier place.
std::vector<int> promote(const Part& part, const Attempt& from, int64_t target, uint64_t& state) {
  const size_t n = from.order.size();
  std::vector<double> key(n);
  for (size_t rank = 0; rank < n; ++rank) {
    const int i = from.order[rank];
    key[i] = double(rank);
    if (from.placed.offsets[i] + part.items[i].size > target) {
      const double fraction = double(next_random(state) >> 11) * 0x1p-53;
      key[i] = key[i] * fraction - 0.5;
    }
  }
  std::vector<int> order = from.order;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] < key[b]; });
  return order;
}

std::vector<int64_t> pack_part(const Part& part, int64_t target, int64_t& probes_left) {
  OccupiedSpace space(part.slots);
  Attempt best;
  Attempt current;
  // True if the target is met.
  const auto attempt = [&](std::vector<int> order) {
    current.placed = place_in_order(part, order, space);
    current.order = std::move(order);
    probes_left -= current.placed.probes;
    if (best.order.empty() || current.placed.end < best.placed.end) best = current;
    return best.placed.end <= target;
  };
  // The first two between them suit most parts, so every part gets them.
  if (attempt(order_by_lifetime(part)) ||
      attempt(order_by_offset(best_fit_in_call_order(part, false))) || probes_left <= 0 ||
      attempt(order_by_offset(best_fit_in_call_order(part, true))) ||
      attempt(order_by_size(part)) || attempt(order_by_area(part))) {
    return best.placed.offsets;
  }
  uint64_t state = 0;
  current = best;
  int since_best = 0;
  for (int round = 0; round < kLayoutLimits.wheel_rounds && probes_left > 0; ++round) {
    const int64_t before = best.placed.end;
    if (attempt(promote(part, current, target, state))) break;
    if (best.placed.end < before) {
      since_best = 0;
    } else if (++since_best == kLayoutLimits.wheel_patience) {
      current = best;
      since_best = 0;
    }
  }
  return best.placed.offsets;
}

}  // namespace

extern const Packer packer_squeaky_wheel{
    .name = "squeaky_wheel",
    .summary = "places again and again, first those that ended too high",
    .pack = pack_within<pack_part, kLayoutLimits.wheel_probes>,
    .effort = 2,
};

}  // namespace thimble
