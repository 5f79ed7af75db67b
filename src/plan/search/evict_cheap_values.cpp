#include "plan/search/evict_cheap_values.h"

#include <algorithm>

namespace thimble {
namespace {

// Units that take next to no time to make from the step's inputs.
std::vector<size_t> quick_units(const StepMemoryModel& memory, double next_to_nothing) {
  double forward = 0;
  for (size_t s = 0; s < memory.forward; ++s) forward += memory.calls[s].seconds;
  std::vector<double> from_inputs(memory.evictables.size(),
                                  0);  // seconds, shared parts counted twice
  std::vector<size_t> found;
  for (size_t u = 0; u < memory.evictables.size(); ++u) {
    const EvictableUse& maker = memory.calls[static_cast<size_t>(memory.maker[u])];
    from_inputs[u] = maker.seconds;
    for (const int input : maker.reads) from_inputs[u] += from_inputs[static_cast<size_t>(input)];
    if (from_inputs[u] < next_to_nothing * forward) found.push_back(u);
  }
  return found;
}

}  // namespace

void add_cheap_evictions(const StepMemoryModel& memory, const SearchLimits& limits,
                         std::vector<EvictionPoint>& points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.peak > b.peak; });
  const std::vector<size_t> dropped = quick_units(memory, limits.next_to_nothing);
  const size_t count = points.size();
  for (size_t i = count - std::min(count, limits.lean_copies); i < count; ++i) {
    EvictionPoint lean = points[i];
    for (const size_t u : dropped) {
      for (size_t s = memory.forward; s < lean.drops.size(); ++s) {
        lean.drops[s].push_back(memory.evictables[u]);
      }
    }
    points.push_back(std::move(lean));
  }
}

}  // namespace thimble
