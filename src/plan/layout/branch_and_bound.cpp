// Searches for a layout that ends at the live peak, or proves that there is none and closes in on
// the smallest that exists; after google/minimalloc. Exact where the node limit is not reached.
//
// Some smallest layout is canonical: placed by rising offset, every buffer rests on one below it or
// on the ground, and none could drop into free space below. So the search places buffers by rising
// offset, each on top of the placed ones that it meets in time, and leaves a branch when
//   - a buffer left for later could have gone, whole, below the one placed now;
//   - in some slot, the lowest place left plus all that must still go there exceeds the capacity;
//   - an identical buffer with a lower index is still waiting.
// Buffers still waiting that no longer meet in time are searched separately.
#include <algorithm>
#include <array>
#include <compare>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/layout/best_fit_in_call_order.h"
#include "plan/layout/layout_limits.h"
#include "plan/layout/place_in_order.h"
#include "plan/packer.h"

namespace thimble {
namespace {

enum class Found { yes, no, unknown };

// One search for a layout of `part` that ends at or below `capacity`.
class Search {
 public:
  // `rank`: by item; of the buffers that can go equally low, the lowest rank is tried first.
  Search(const Part& part, int64_t capacity, std::span<const int> rank, int64_t visits)
      : items_(part.items),
        capacity_(capacity),
        rank_(rank),
        visits_left_(visits),
        lowest_(part.items.size(), 0),
        waiting_bytes_(part.slots, 0),
        offsets_(part.items.size(), 0) {
    for (const PartItem& item : items_) {
      for (int s = item.first; s <= item.last; ++s) waiting_bytes_[s] += item.size;
    }
  }

  Found run() {
    std::vector<int> all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    const bool found = place_all(all, 0);
    if (found) return Found::yes;
    return visits_left_ > 0 ? Found::no : Found::unknown;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t visits_left() const { return visits_left_; }

 private:
  // Places `waiting` (by first slot), all of them at `floor` or higher. False leaves lowest_ and
  // waiting_bytes_ of their slots undefined: the caller restores them.
  bool place_all(const std::vector<int>& waiting, int64_t floor) {
    size_t begin = 0;
    int end = -1;
    for (size_t k = 0; k <= waiting.size(); ++k) {
      if (k == waiting.size() || (k > begin && items_[waiting[k]].first > end)) {
        if (begin < k && !place_component({waiting.begin() + begin, waiting.begin() + k}, floor)) {
          return false;
        }
        begin = k;
      }
      if (k < waiting.size()) end = std::max(end, items_[waiting[k]].last);
    }
    return true;
  }

  bool place_component(const std::vector<int>& waiting, int64_t floor) {
    const int first_slot = items_[waiting.front()].first;
    int last_slot = first_slot;
    for (const int i : waiting) last_slot = std::max(last_slot, items_[i].last);
    visits_left_ -= 2 * int64_t(waiting.size()) + (last_slot - first_slot + 1);
    if (visits_left_ <= 0) return false;

    std::vector<Candidate> candidates;
    candidates.reserve(waiting.size());
    for (const int i : waiting) {
      candidates.push_back({std::max(lowest_[i], floor), rank_[i], i});
      if (candidates.back().start + items_[i].size > capacity_) return false;
    }
    std::sort(candidates.begin(), candidates.end());
    if (!fits(candidates, first_slot, last_slot)) return false;

    // The next buffer has to start below the lowest end that any waiting buffer could have.
    int64_t lowest_end = std::numeric_limits<int64_t>::max();
    for (const int i : waiting) lowest_end = std::min(lowest_end, lowest_[i] + items_[i].size);

    std::vector<int64_t> saved_lowest(waiting.size());
    for (size_t k = 0; k < waiting.size(); ++k) saved_lowest[k] = lowest_[waiting[k]];
    const std::vector<int64_t> saved_bytes(waiting_bytes_.begin() + first_slot,
                                           waiting_bytes_.begin() + last_slot + 1);
    std::vector<int> others(waiting.size() - 1);
    for (const auto& [start, rank, i] : candidates) {
      const PartItem& item = items_[i];
      const int64_t offset = saved_lowest_of(waiting, saved_lowest, i);
      if (offset >= lowest_end) continue;
      if (offset < floor || has_waiting_twin(waiting, i)) continue;

      offsets_[i] = offset;
      for (int s = item.first; s <= item.last; ++s) waiting_bytes_[s] -= item.size;
      size_t n = 0;
      for (const int j : waiting) {
        if (j == i) continue;
        if (items_[j].overlaps(item)) lowest_[j] = std::max(lowest_[j], offset + item.size);
        others[n++] = j;
      }
      visits_left_ -= int64_t(waiting.size()) + item.width();
      if (place_all(others, offset)) return true;
      for (size_t k = 0; k < waiting.size(); ++k) lowest_[waiting[k]] = saved_lowest[k];
      std::copy(saved_bytes.begin(), saved_bytes.end(), waiting_bytes_.begin() + first_slot);
      if (visits_left_ <= 0) return false;
    }
    return false;
  }

  // An item that waits, in the order in which items are tried.
  struct Candidate {
    int64_t start = 0;  // no lower
    int rank = 0;
    int item = 0;
    auto operator<=>(const Candidate&) const = default;
  };

  // Whether every slot can still hold what waits for it. `by_start`: lowest first; the first that
  // covers a slot says where the slot's free bytes begin.
  bool fits(const std::vector<Candidate>& by_start, int first_slot, int last_slot) {
    // next_[s]: the first slot at or after s that nobody has covered, paths shortened on the way.
    next_.resize(waiting_bytes_.size() + 1);
    std::iota(next_.begin() + first_slot, next_.begin() + last_slot + 2, first_slot);
    const auto uncovered = [&](int s) {
      while (next_[s] != s) s = next_[s] = next_[next_[s]];
      return s;
    };
    for (const auto& [start, rank, i] : by_start) {
      for (int s = uncovered(items_[i].first); s <= items_[i].last; s = uncovered(s)) {
        if (start + waiting_bytes_[s] > capacity_) return false;
        next_[s] = s + 1;
      }
    }
    return true;
  }

  // The saved offsets stand in the order of `waiting`, which is by item index.
  static int64_t saved_lowest_of(const std::vector<int>& waiting, std::span<const int64_t> saved,
                                 int item) {
    return saved[std::lower_bound(waiting.begin(), waiting.end(), item) - waiting.begin()];
  }

  bool has_waiting_twin(const std::vector<int>& waiting, int item) const {
    const PartItem& self = items_[item];
    auto at = std::lower_bound(waiting.begin(), waiting.end(), item);
    while (at != waiting.begin()) {
      const PartItem& other = items_[*--at];
      if (other.first != self.first) return false;
      if (other.last == self.last && other.size == self.size) return true;
    }
    return false;
  }

  const std::vector<PartItem>& items_;
  const int64_t capacity_;
  const std::span<const int> rank_;
  int64_t visits_left_;
  std::vector<int64_t> lowest_;         // by item: on top of what it meets among the placed
  std::vector<int64_t> waiting_bytes_;  // by slot: sizes of the items not placed yet
  std::vector<int64_t> offsets_;        // by item, of the placed
  std::vector<int> next_;               // scratch of fits()
};

std::vector<int> ranks(const std::vector<int>& order) {
  std::vector<int> rank(order.size());
  for (size_t r = 0; r < order.size(); ++r) rank[order[r]] = int(r);
  return rank;
}

// The best of the quick layouts, or the first of them that meets the target.
std::vector<int64_t> greedy_start(const Part& part, int64_t target) {
  std::vector<int64_t> best;
  int64_t end = std::numeric_limits<int64_t>::max();
  const auto offer = [&](std::vector<int64_t> offsets) {
    const int64_t other = highest_end(part, offsets);
    if (other < end) best = std::move(offsets), end = other;
    return end <= target;
  };
  offer(best_fit_in_call_order(part, false)) || offer(best_fit_in_call_order(part, true)) ||
      offer(place_in_order(part, order_by_lifetime(part)).offsets) ||
      offer(place_in_order(part, order_by_size(part)).offsets);
  return best;
}

std::vector<int64_t> pack_part(const Part& part, int64_t target, int64_t& visits_left) {
  std::vector<int64_t> best = greedy_start(part, target);
  int64_t end = highest_end(part, best);
  if (end <= target || part.items.size() > kLayoutLimits.most_items || visits_left <= 0)
    return best;

  // Every end of a canonical layout is a sum of sizes, hence a multiple of their common divisor.
  int64_t unit = 0;
  for (const PartItem& item : part.items) unit = std::gcd(unit, item.size);
  const std::array<std::vector<int>, 3> rankings = {
      ranks(order_by_lifetime(part)), ranks(order_by_area(part)), ranks(order_by_size(part))};
  const auto try_capacity = [&](int64_t capacity) {
    for (const std::vector<int>& rank : rankings) {
      const int64_t visits = std::min(kLayoutLimits.visits_per_run, visits_left);
      Search search(part, capacity, rank, visits);
      const Found found = search.run();
      visits_left -= visits - std::max<int64_t>(search.visits_left(), 0);
      if (found == Found::yes) {
        best = search.offsets();
        end = highest_end(part, best);
      }
      if (found != Found::unknown) return;
    }
  };
  // The least end lies in (below, end]; a capacity given up on counts as impossible.
  int64_t below = std::max(target, live_peak(part)) / unit * unit;
  try_capacity(below);
  while (visits_left > 0) {
    const int64_t steps = (end - 1 - below) / unit;  // capacities that would be an improvement
    if (end <= below || steps == 0) break;
    const int64_t middle = below + (steps + 1) / 2 * unit;
    const int64_t before = end;
    try_capacity(middle);
    if (end == before) below = middle;
  }
  return best;
}

}  // namespace

extern const Packer packer_branch_and_bound{
    .name = "branch_and_bound",
    .summary = "exact search for small or separable problems, with a limit on its visits",
    .pack = pack_within<pack_part, kLayoutLimits.visits>,
    .effort = 1,
};

}  // namespace thimble
