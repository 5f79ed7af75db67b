#include "plan/search/eviction_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plan/search/beam_eviction.h"
#include "plan/search/step_memory_model.h"

namespace thimble {
namespace {

// No plan does with less: at each stage, what is always there and what the node itself needs.
int64_t least_peak(const StepMemoryModel& memory) {
  int64_t least = 0;
  for (size_t s = 0; s < memory.stages.size(); ++s) {
    int64_t sum = memory.always[s].count + memory.calls[s].scratch.count;
    for (const int u : memory.calls[s].reads) sum += memory.bytes[static_cast<size_t>(u)].count;
    least = std::max(least, sum);
  }
  return least;
}

// Asks for budget after budget: first by equal ratios from the top down, and in between where that
// fails; then where most may lie hidden between two answers.
template <size_t Words>
class Walk {
 public:
  Walk(const StepMemoryModel& memory, const EvictionEffort& effort, const SearchLimits& limits,
       Bytes everything)
      : search_(memory, effort, limits.repairs),
        effort_(effort),
        limits_(limits),
        top_(static_cast<double>(everything.count)),
        bottom_(static_cast<double>(least_peak(memory)) - 1) {}

  std::vector<EvictionPoint> run() {
    go_down(effort_.first_budgets, limits_.bisections);
    while (points_.size() < static_cast<size_t>(effort_.budgets) && ask_between()) {
    }
    return std::move(points_);
  }

  // Down to the least budget that has an answer.
  std::vector<EvictionPoint> lean() {
    go_down(limits_.floor_budgets, limits_.floor_bisections);
    return std::move(points_);
  }

 private:
  // Budgets in (low, high) are not known to have a better answer than that of `low`.
  struct Gap {
    double low = 0;
    double high = 0;
    double low_seconds = 0;
    double high_seconds = 0;
  };
  // Narrow ones are not worth the effort.
  double worth(const Gap& gap) const {
    const double width = std::log(gap.high / gap.low);
    return width < limits_.narrow_gap ? 0 : (gap.low_seconds - gap.high_seconds) * width;
  }

  const EvictionPoint* ask(double budget) {
    if (search_.work() > effort_.work) return nullptr;
    call_watch(limits_);
    auto found = search_.solve(static_cast<int64_t>(budget));
    if (!found) return nullptr;
    points_.push_back(std::move(*found));
    return &points_.back();
  }

  void go_down(int budgets, int bisections) {
    const double ratio = std::pow(bottom_ / top_, 1.0 / budgets);
    double high = top_;
    double high_seconds = 0;
    double out_of_reach = bottom_;
    for (int failures = 0; failures < bisections;) {
      const double next = failures == 0 ? high * ratio : (high + out_of_reach) / 2;
      const double budget = std::min(std::floor(next), high - 1);
      if (budget <= out_of_reach) break;
      if (const EvictionPoint* point = ask(budget)) {
        const auto peak = static_cast<double>(point->peak.count);
        gaps_.push_back({budget, high, point->seconds, high_seconds});
        high = peak;
        high_seconds = point->seconds;
      } else {
        out_of_reach = budget;
        ++failures;
      }
    }
  }

  // False when nothing is worth asking for any more.
  bool ask_between() {
    const auto widest =
        std::max_element(gaps_.begin(), gaps_.end(),
                         [&](const Gap& a, const Gap& b) { return worth(a) < worth(b); });
    if (widest == gaps_.end() || worth(*widest) <= 0) return false;
    const Gap gap = *widest;
    gaps_.erase(widest);
    const double budget = std::floor(std::sqrt(gap.low * gap.high));
    if (budget <= gap.low || budget >= gap.high - 1) return true;
    const EvictionPoint* point = ask(budget);
    if (point == nullptr) return search_.work() <= effort_.work;
    if (point->seconds < gap.low_seconds) {
      const auto peak = static_cast<double>(point->peak.count);
      if (peak > gap.low) gaps_.push_back({gap.low, peak, gap.low_seconds, point->seconds});
      gaps_.push_back({budget, gap.high, point->seconds, gap.high_seconds});
    } else {
      gaps_.push_back({budget, gap.high, gap.low_seconds, gap.high_seconds});
    }
    return true;
  }

  BeamEviction<Words> search_;
  const EvictionEffort& effort_;
  const SearchLimits& limits_;
  const double top_;
  const double bottom_;
  std::vector<EvictionPoint> points_;
  std::vector<Gap> gaps_;
};

// Calls `points` with a walk of the step. Empty for a step that is too large.
template <class Points>
std::vector<EvictionPoint> walked(const StepMemoryModel& memory, const SearchLimits& limits,
                                  Bytes below, const Points& points) {
  const auto values = std::ssize(memory.evictables);
  for (const EvictionEffort& effort : limits.eviction_efforts) {
    if (values > effort.values) continue;
    if (values <= 64) return points(Walk<1>(memory, effort, limits, below));
    if (values <= 256) return points(Walk<4>(memory, effort, limits, below));
    if (values <= 1024) return points(Walk<16>(memory, effort, limits, below));
  }
  return {};
}

}  // namespace

std::vector<EvictionPoint> eviction_frontier(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits) {
  const StepMemoryModel memory(pass, costs);
  return walked(memory, limits, below, [](auto walk) { return walk.run(); });
}

std::vector<EvictionPoint> leanest_evictions(const ForwardPass& pass, const Costs& costs,
                                             Bytes below, const SearchLimits& limits) {
  SearchLimits few = limits;
  for (EvictionEffort& effort : few.eviction_efforts) {
    effort.work = limits.floor_work;
    effort.beam = std::min(effort.beam, limits.floor_beam);
    effort.widest = std::min(effort.widest, limits.floor_widest);
    effort.covers = std::min(effort.covers, limits.floor_covers);
  }
  const StepMemoryModel memory(pass, costs);
  return walked(memory, few, below, [](auto walk) { return walk.lean(); });
}

}  // namespace thimble
