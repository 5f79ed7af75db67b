#include "plan/layout/place_in_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "plan/layout/layout_limits.h"

namespace thimble {
namespace {

// Items with the largest key first; equal ones in order of birth.
template <typename Key>
std::vector<int> descending(const Part& part, Key key) {
  std::vector<int> order(part.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return key(part.items[a]) > key(part.items[b]); });
  return order;
}

}  // namespace

Placement place_in_order(const Part& part, std::span<const int> order) {
  OccupiedSpace space(part.slots);
  return place_in_order(part, order, space);
}

Placement place_in_order(const Part& part, std::span<const int> order, OccupiedSpace& space) {
  space.clear();
  Placement placed;
  placed.offsets.resize(part.items.size());
  const int64_t probes =
      std::max(kLayoutLimits.fewest_probes, kLayoutLimits.probes / int64_t(part.items.size() + 1));
  for (const int i : order) {
    const PartItem& item = part.items[i];
    const int64_t offset = space.low_fit(item.first, item.last, item.size, probes);
    space.occupy(item.first, item.last, offset, item.size);
    placed.offsets[i] = offset;
    placed.end = std::max(placed.end, offset + item.size);
  }
  placed.probes = space.probes();
  return placed;
}

std::vector<int> order_by_size(const Part& part) {
  return descending(part, [](const PartItem& i) { return std::tuple(i.size, i.width()); });
}

std::vector<int> order_by_lifetime(const Part& part) {
  return descending(part, [](const PartItem& i) { return std::tuple(i.width(), i.size); });
}

std::vector<int> order_by_area(const Part& part) {
  return descending(part, [](const PartItem& i) { return double(i.size) * i.width(); });
}

}  // namespace thimble
