#include "plan/layout/best_fit_in_call_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace thimble {
namespace {

// The free bytes of an unbounded arena. Holes never touch each other or the top.
class FreeList {
 public:
  int64_t take(int64_t size) {
    const auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) return std::exchange(top_, top_ + size);
    const auto [length, begin] = *best;
    remove(begin, length);
    if (length > size) insert(begin + size, length - size);
    return begin;
  }

  void give_back(int64_t begin, int64_t size) {
    const auto next = by_begin_.lower_bound(begin);
    int64_t end = begin + size;
    if (next != by_begin_.end() && next->first == end) {
      end += next->second;
      remove(next->first, next->second);
    }
    const auto after = by_begin_.lower_bound(begin);
    if (after != by_begin_.begin()) {
      const auto [before, length] = *std::prev(after);
      if (before + length == begin) {
        begin = before;
        remove(before, length);
      }
    }
    if (end == top_) {
      top_ = begin;
    } else {
      insert(begin, end - begin);
    }
  }

 private:
  void insert(int64_t begin, int64_t size) {
    by_begin_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void remove(int64_t begin, int64_t size) {
    by_begin_.erase(begin);
    by_size_.erase({size, begin});
  }

  int64_t top_ = 0;
  std::map<int64_t, int64_t> by_begin_;            // begin -> size
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (size, begin)
};

}  // namespace

std::vector<int64_t> best_fit_in_call_order(const Part& part, bool backward) {
  std::vector<std::vector<int>> born(part.slots), dies(part.slots);
  for (int i = 0; i < int(part.items.size()); ++i) {
    born[part.items[i].first].push_back(i);
    dies[part.items[i].last].push_back(i);
  }
  if (backward) {
    born.swap(dies);
    std::reverse(born.begin(), born.end());
    std::reverse(dies.begin(), dies.end());
  }
  FreeList free;
  std::vector<int64_t> offsets(part.items.size());
  for (int slot = 0; slot < part.slots; ++slot) {
    // Of those born together the longest-lived go lowest, as a stack would have them.
    std::stable_sort(born[slot].begin(), born[slot].end(), [&](int a, int b) {
      const PartItem &x = part.items[a], &y = part.items[b];
      return std::tuple(x.width(), x.size) > std::tuple(y.width(), y.size);
    });
    for (const int i : born[slot]) offsets[i] = free.take(part.items[i].size);
    for (const int i : dies[slot]) free.give_back(offsets[i], part.items[i].size);
  }
  return offsets;
}

}  // namespace thimble
