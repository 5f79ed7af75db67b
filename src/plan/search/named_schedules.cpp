#include "plan/search/named_schedules.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/policy.h"
#include "plan/schedule/recursive_segments.h"

namespace thimble {

std::vector<Schedule> schedules_of_policies(const PlanRequest& asked) {
  std::vector<Schedule> schedules;
  for (const Policy* policy : all_policies()) {
    if (policy->traits.by_budget || policy->sharing != Sharing::sharing) continue;
    PlanRequest request = asked;
    request.budget.reset();
    request.number = policy->number.usual;
    if (policy->candidates != nullptr) {
      for (Schedule& schedule : policy->candidates(request)) {
        schedules.push_back(std::move(schedule));
      }
    } else {
      schedules.push_back(policy->schedule(request));
    }
  }
  return schedules;
}

std::vector<Schedule> halvings(const ForwardPass& pass, const std::vector<Block>& blocks,
                               const SearchLimits& limits) {
  std::vector<Schedule> schedules;
  const size_t count =
      affordable(pass.graph.nodes.size(), limits.least_halvings, limits.most_halvings, limits);
  for (size_t i = 0; i < count; ++i) {
    const double exponent = 1 + 5.0 * static_cast<double>(i) / static_cast<double>(count - 1);
    const auto segments = static_cast<size_t>(std::lround(std::pow(2.0, exponent)));
    if (segments * 2 > blocks.size()) break;
    RecursiveSegments retention(pass, blocks, segments);
    schedules.push_back(schedule_with(pass, retention));
  }
  return schedules;
}

size_t affordable(size_t nodes, size_t least, size_t most, const SearchLimits& limits) {
  const auto all = static_cast<size_t>(limits.pool_nodes);
  return std::clamp(all * most / std::max<size_t>(1, nodes), least, most);
}

bool worth_evicting(const ForwardPass& pass, const std::vector<Block>& blocks,
                    const SearchLimits& limits) {
  if (pass.size() <= limits.eviction_nodes) return true;
  int64_t largest = 0, total = 0;
  for (const Block& block : blocks) {
    largest = std::max(largest, block.made.count);
    total += block.made.count;
  }
  return largest * limits.lumpy_share > total;
}

}  // namespace thimble
