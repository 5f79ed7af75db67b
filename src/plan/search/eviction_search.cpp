#include "plan/search/eviction_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plan/search/beam_eviction.h"
#include "plan/search/evict_cheap_values.h"
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
  Walk(const StepMemoryModel& memory, const Effort& effort, Bytes everything)
      : search_(memory, effort),
        effort_(effort),
        top_(static_cast<double>(everything.count)),
        bottom_(static_cast<double>(least_peak(memory)) - 1) {}

  std::vector<EvictionPoint> run() {
    go_down();
    while (points_.size() < static_cast<size_t>(effort_.budgets) && ask_between()) {
    }
    return std::move(points_);
  }

 private:
  // Budgets in (low, high) are not known to have a better answer than that of `low`.
  struct Gap {
    double low = 0;
    double high = 0;
    double low_seconds = 0;
    double high_seconds = 0;
    // Narrow ones are not worth the effort.
    double worth() const {
      constexpr double kNarrow = 1e-3;
      const double width = std::log(high / low);
      return width < kNarrow ? 0 : (low_seconds - high_seconds) * width;
    }
  };

  const EvictionPoint* ask(double budget) {
    if (search_.work() > effort_.work) return nullptr;
    auto found = search_.solve(static_cast<int64_t>(budget));
    if (!found) return nullptr;
    points_.push_back(std::move(*found));
    return &points_.back();
  }

  void go_down() {
    constexpr int kBisections = 5;
    const double ratio = std::pow(bottom_ / top_, 1.0 / effort_.first_budgets);
    double high = top_;
    double high_seconds = 0;
    double out_of_reach = bottom_;
    for (int failures = 0; failures < kBisections;) {
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
                         [](const Gap& a, const Gap& b) { return a.worth() < b.worth(); });
    if (widest == gaps_.end() || widest->worth() <= 0) return false;
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
  const Effort& effort_;
  const double top_;
  const double bottom_;
  std::vector<EvictionPoint> points_;
  std::vector<Gap> gaps_;
};

template <size_t Words>
std::vector<EvictionPoint> walk(const StepMemoryModel& memory, const Effort& effort, Bytes below) {
  std::vector<EvictionPoint> points = Walk<Words>(memory, effort, below).run();
  add_cheap_evictions(memory, points);
  return points;
}

}  // namespace

std::vector<EvictionPoint> eviction_frontier(const ForwardPass& pass, const Costs& costs,
                                             Bytes below) {
  const StepMemoryModel memory(pass, costs);
  const size_t evictables = memory.evictables.size();
  if (evictables <= 64) {
    const Effort thorough{.first_budgets = 16,
                          .budgets = 200,
                          .beam = 48,
                          .widest = 192,
                          .covers = 12,
                          .exact_prices = true,
                          .work = 60'000'000};
    return walk<1>(memory, thorough, below);
  }
  if (evictables <= 256) {
    const Effort quick{.first_budgets = 24,
                       .budgets = 48,
                       .beam = 6,
                       .widest = 6,
                       .covers = 6,
                       .exact_prices = false,
                       .work = 60'000'000};
    return walk<4>(memory, quick, below);
  }
  if (evictables > kMostUnits) return {};
  const Effort hasty{.first_budgets = 12,
                     .budgets = 16,
                     .beam = 2,
                     .widest = 2,
                     .covers = 4,
                     .exact_prices = false,
                     .work = 60'000'000};
  return walk<kMostUnits / 64>(memory, hasty, below);
}

}  // namespace thimble
