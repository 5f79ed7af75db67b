#include "plan/layout/occupied_space.h"

#include <algorithm>
#include <bit>

#include "base/number/bytes.h"

namespace thimble {

OccupiedSpace::OccupiedSpace(int slots)
    : slots_(int(std::bit_ceil(unsigned(std::max(slots, 1))))), nodes_(2 * size_t(slots_)) {}

void OccupiedSpace::clear() {
  for (Node& node : nodes_) {
    node.throughout.clear();
    node.anywhere.clear();
  }
  probes_ = 0;
}

int64_t OccupiedSpace::low_fit(int first, int last, int64_t size, int64_t probes) {
  seen_.clear();
  collect(1, 0, slots_, first, last);
  // Every set in turn pushes the offset up past what is in the way, until all of them agree.
  int64_t offset = 0;
  int64_t probes_left = probes;
  size_t agreed = 0;
  for (size_t s = 0; agreed < seen_.size(); s = s + 1 < seen_.size() ? s + 1 : 0) {
    Seen& set = seen_[s];
    const int64_t before = offset;
    set.skip_below(offset);
    for (; set.next != set.end && set.next->begin < offset + size; ++set.next) {
      offset = set.next->end;
    }
    agreed = offset == before ? agreed + 1 : 1;
    ++probes_;
    if (--probes_left == 0) {
      int64_t top = offset;
      for (const Seen& other : seen_) top = std::max(top, (other.end - 1)->end);
      offset += align_up(Bytes((top - offset) / 2)).count;
      probes_left = probes;
      agreed = 0;
    }
  }
  return offset;
}

void OccupiedSpace::Seen::skip_below(int64_t offset) {
  constexpr int kNear = 4;  // one step after another, before it pays to halve what is left
  for (int i = 0; next != end && next->end <= offset; ++i, ++next) {
    if (i < kNear) continue;
    next = std::upper_bound(next, end, offset,
                            [](int64_t at, const Range& range) { return at < range.end; });
    return;
  }
}

void OccupiedSpace::occupy(int first, int last, int64_t offset, int64_t size) {
  occupy(1, 0, slots_, first, last, {offset, offset + size});
}

void OccupiedSpace::add(Ranges& ranges, Range range) {
  // [from, to) are the ranges that the new one overlaps or touches.
  const auto from = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                                     [](const Range& r, int64_t at) { return r.end < at; });
  auto to = from;
  for (; to != ranges.end() && to->begin <= range.end; ++to) {
    range.begin = std::min(range.begin, to->begin);
    range.end = std::max(range.end, to->end);
  }
  if (from == to) {
    ranges.insert(from, range);
  } else {
    *from = range;
    ranges.erase(from + 1, to);
  }
}

void OccupiedSpace::collect(int node, int begin, int end, int first, int last) {
  if (last < begin || end <= first || nodes_[node].anywhere.empty()) return;
  if (first <= begin && end - 1 <= last) {
    seen_.emplace_back(nodes_[node].anywhere);
    return;
  }
  if (!nodes_[node].throughout.empty()) seen_.emplace_back(nodes_[node].throughout);
  const int middle = begin + (end - begin) / 2;
  collect(2 * node, begin, middle, first, last);
  collect(2 * node + 1, middle, end, first, last);
}

void OccupiedSpace::occupy(int node, int begin, int end, int first, int last, Range range) {
  if (last < begin || end <= first) return;
  ++probes_;
  add(nodes_[node].anywhere, range);
  if (first <= begin && end - 1 <= last) {
    add(nodes_[node].throughout, range);
    return;
  }
  const int middle = begin + (end - begin) / 2;
  occupy(2 * node, begin, middle, first, last, range);
  occupy(2 * node + 1, middle, end, first, last, range);
}

}  // namespace thimble
