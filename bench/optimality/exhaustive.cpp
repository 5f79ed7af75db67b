#include "optimality/exhaustive.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

#include "base/error.h"

namespace thimble {
namespace {

using Mask = uint64_t;  // of loose values
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct State {
  int next = 0;  // the task that has not run yet
  Mask there = 0;
  bool operator==(const State&) const = default;
};

struct StateHash {
  size_t operator()(const State& state) const {
    uint64_t z = state.there * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(state.next);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 31);
  }
};

// How a state was reached at the least price so far.
struct Visit {
  int64_t price = kNever;
  State from;
  int ran = -1;
  bool closed = false;
};

// A value is loose when its presence is a choice: a repeatable task makes or reads it. The others
// live from their making to their last reader, whatever is chosen.
class Search {
 public:
  Search(const Problem& problem, const SearchLimits& limits)
      : problem_(problem),
        limits_(limits),
        bit_(problem.values.size(), -1),
        fixed_(problem.tasks.size(), problem.persistent),
        price_(problem.tasks.size(), 0) {
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Problem::Value& value = problem.values[v];
      bool loose = value.maker >= 0 && task(value.maker).repeatable;
      for (const int reader : value.readers) loose |= task(reader).repeatable;
      if (loose) {
        bit_[v] = static_cast<int>(loose_.size());
        loose_.push_back(static_cast<int>(v));
      } else {
        const int last = std::min(value.needed_until, problem.size() - 1);
        for (int t = value.maker + 1; t <= last; ++t) fixed_[static_cast<size_t>(t)] += value.bytes;
      }
    }
    internal_check(loose_.size() <= 64, "too many values for an exhaustive search");
    by_size_ = loose_;
    std::sort(by_size_.begin(), by_size_.end(),
              [&](int a, int b) { return bytes_of(a) > bytes_of(b); });
    find_wants();
  }

  // From here on repetitions cost their time in picoseconds; else they are free.
  void count_time() {
    for (size_t t = 0; t < price_.size(); ++t) {
      price_[t] = std::llround(problem_.tasks[t].seconds * 1e12);
    }
  }

  SearchResult run(int64_t budget) {
    budget_ = budget;
    State start;
    for (const int v : loose_) {
      if (problem_.values[static_cast<size_t>(v)].maker < 0) start.there |= mask_of(v);
    }
    reach(start, 0, start, -1);
    SearchResult result;
    while (!queue_.empty() && visits_.size() <= limits_.states) {
      const State state = queue_.top().state;
      queue_.pop();
      Visit& visit = visits_[state];
      if (visit.closed) continue;
      visit.closed = true;
      if (state.next == problem_.size()) {
        result.feasible = true;
        result.runs = path_to(state);
        break;
      }
      const int64_t price = visit.price;
      run_task(state, state.next, price);
      for (uint64_t again = *missing(state); again != 0; again &= again - 1) {
        run_task(state, std::countr_zero(again), price);
      }
    }
    result.finished = result.feasible || queue_.empty();
    result.states = visits_.size();
    return result;
  }

 private:
  struct Entry {
    int64_t estimate = 0;
    State state;
    bool operator<(const Entry& other) const {  // the queue gives the largest first
      if (estimate != other.estimate) return estimate > other.estimate;
      return state.next < other.state.next;
    }
  };

  const Problem::Task& task(int t) const { return problem_.tasks[static_cast<size_t>(t)]; }
  int64_t bytes_of(int v) const { return problem_.values[static_cast<size_t>(v)].bytes; }
  bool loose(int v) const { return bit_[static_cast<size_t>(v)] >= 0; }
  Mask mask_of(int v) const { return loose(v) ? Mask{1} << bit_[static_cast<size_t>(v)] : 0; }

  int64_t bytes_in(Mask there) const {
    int64_t bytes = 0;
    for (; there != 0; there &= there - 1) {
      bytes += bytes_of(loose_[static_cast<size_t>(std::countr_zero(there))]);
    }
    return bytes;
  }

  // By next task: what may still be wanted, and what later first runs (or the caller, at the end)
  // read of what has been made.
  void find_wants() {
    const size_t count = static_cast<size_t>(problem_.size()) + 1;
    alive_.assign(count, 0);
    wanted_.assign(count, 0);
    for (const int v : loose_) {
      const Problem::Value& value = problem_.values[static_cast<size_t>(v)];
      for (int next = value.maker + 1; next < static_cast<int>(count); ++next) {
        const bool read = std::any_of(value.readers.begin(), value.readers.end(),
                                      [&](int reader) { return reader >= next; });
        if (value.needed_until >= next) alive_[static_cast<size_t>(next)] |= mask_of(v);
        if (read || value.result) wanted_[static_cast<size_t>(next)] |= mask_of(v);
      }
    }
    for (const Problem::Task& each : problem_.tasks) {
      Mask reads = 0;
      for (const int v : each.reads) reads |= mask_of(v);
      reads_.push_back(reads);
    }
  }

  // Tasks that must run again before the end, each at least once: what is wanted and not there, and
  // what that needs. Nothing if something is gone for good. Tasks that may run again are among the
  // first 64.
  std::optional<uint64_t> missing(const State& state) const {
    uint64_t again = 0;
    Mask absent = wanted_[static_cast<size_t>(state.next)] & ~state.there;
    while (absent != 0) {
      const int v = loose_[static_cast<size_t>(std::countr_zero(absent))];
      absent &= absent - 1;
      const int maker = problem_.values[static_cast<size_t>(v)].maker;
      if (maker < 0 || !task(maker).repeatable) return std::nullopt;
      if ((again >> maker & 1) != 0) continue;
      again |= uint64_t{1} << maker;
      absent |= reads_[static_cast<size_t>(maker)] & ~state.there;
    }
    return again;
  }

  // Runs a task with every smallest set of values dropped that makes room for it.
  void run_task(const State& state, int t, int64_t price) {
    const Mask read = reads_[static_cast<size_t>(t)];
    if ((read & ~state.there) != 0) return;
    const bool first = t == state.next;
    Mask made = 0, may_end = 0;
    int64_t bytes = fixed_[static_cast<size_t>(state.next)] + task(t).scratch;
    for (const int v : task(t).makes) {
      made |= mask_of(v);
      bytes += bytes_of(v);
    }
    bytes += bytes_in(state.there & ~made);
    for (const Problem::Takeover& over : task(t).takeovers) may_end |= mask_of(over.from);
    if (!first) price += price_[static_cast<size_t>(t)];
    // Each choice of loose values that end here, to be taken over.
    for (Mask ends = may_end;; ends = (ends - 1) & may_end) {
      const int64_t excess = bytes - taken_over(t, ends, 0, 0) - budget_;
      make_room(state.there & ~read & ~made, 0, excess, 0, [&](Mask dropped) {
        const Mask there = (state.there & ~ends & ~dropped) | made;
        reach({state.next + (first ? 1 : 0), there}, price, state, t);
      });
      if (ends == 0) break;
    }
  }

  // Calls `use` with every set of `candidates` of at least `excess` bytes that has no such subset.
  // Candidates are taken from the k-th largest value on.
  template <class Use>
  void make_room(Mask candidates, size_t k, int64_t excess, Mask dropped, const Use& use) {
    if (excess <= 0) return use(dropped);
    if (bytes_in(candidates) < excess) return;
    for (; k < by_size_.size(); ++k) {
      const Mask mask = mask_of(by_size_[k]);
      if ((candidates & mask) == 0) continue;
      candidates &= ~mask;
      // Sizes fall from here on: the last one added is the smallest, so the set is a smallest one.
      make_room(candidates, k + 1, excess - bytes_of(by_size_[k]), dropped | mask, use);
    }
  }

  // The most bytes that results from the k-th on can take over. `used`: takeovers' sources, by bit
  // of their place in the task's reads.
  int64_t taken_over(int t, Mask ends, size_t k, uint64_t used) const {
    if (k == task(t).makes.size()) return 0;
    int64_t best = taken_over(t, ends, k + 1, used);
    for (const Problem::Takeover& over : task(t).takeovers) {
      if (over.to != task(t).makes[k]) continue;
      const auto& reads = task(t).reads;
      const auto place = std::find(reads.begin(), reads.end(), over.from) - reads.begin();
      const bool ends_here =
          loose(over.from) ? (ends & mask_of(over.from)) != 0
                           : problem_.values[static_cast<size_t>(over.from)].needed_until == t;
      if (!ends_here || (used >> place & 1) != 0) continue;
      best = std::max(best,
                      bytes_of(over.to) + taken_over(t, ends, k + 1, used | uint64_t{1} << place));
    }
    return best;
  }

  void reach(State state, int64_t price, const State& from, int ran) {
    state.there &= alive_[static_cast<size_t>(state.next)];
    const std::optional<uint64_t> again = missing(state);
    if (!again) return;
    Visit& visit = visits_[state];
    if (visit.closed || visit.price <= price) return;
    visit = {price, from, ran, false};
    int64_t estimate = price;
    for (uint64_t left = *again; left != 0; left &= left - 1) {
      estimate += price_[static_cast<size_t>(std::countr_zero(left))];
    }
    queue_.push({estimate, state});
  }

  Runs path_to(State state) const {
    Runs runs;
    for (;;) {
      const Visit& visit = visits_.at(state);
      if (visit.ran < 0) break;
      runs.push_back(visit.ran);
      state = visit.from;
    }
    std::reverse(runs.begin(), runs.end());
    return runs;
  }

  const Problem& problem_;
  const SearchLimits limits_;
  int64_t budget_ = 0;
  std::vector<int> loose_;            // values, by bit
  std::vector<int> by_size_;          // the same, largest first
  std::vector<int> bit_;              // by value, or -1
  std::vector<int64_t> fixed_;        // by next task: bytes of what is there anyway
  std::vector<int64_t> price_;        // by task
  std::vector<Mask> reads_;           // by task
  std::vector<Mask> alive_, wanted_;  // by next task: see find_wants
  std::unordered_map<State, Visit, StateHash> visits_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

SearchResult cheapest_runs(const Problem& problem, Bytes budget, const SearchLimits& limits) {
  Search search(problem, limits);
  search.count_time();
  return search.run(budget.count);
}

Bytes smallest_peak(const Problem& problem, const SearchLimits& limits) {
  int64_t low = problem.persistent, high = problem.persistent;
  for (const Problem::Value& value : problem.values) high += value.bytes;
  for (const Problem::Task& task : problem.tasks) high += task.scratch;
  while (high - low > high / 1000) {
    const int64_t middle = low + (high - low) / 2;
    (Search(problem, limits).run(middle).feasible ? high : low) = middle;
  }
  return Bytes(high);
}

}  // namespace thimble
