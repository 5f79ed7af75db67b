#include "plan/search/never_worth_recomputing.h"

#include <algorithm>

namespace thimble {

std::vector<bool> values_never_worth_recomputing(const ForwardPass& pass, const Costs& costs,
                                                 const SearchLimits& limits) {
  double seconds = 0, bytes = 0;
  for (const NodeId id : pass.nodes) {
    seconds += costs.nodes[id.at()].seconds;
    for (const ValueId output : pass.graph[id].outputs) {
      if (!pass.read_backward[output.at()] || pass.bytes_of[output.at()] != output) continue;
      bytes += static_cast<double>(pass.graph[output].type.bytes().count);
    }
  }
  std::vector<bool> kept_values(pass.graph.values.size(), false);
  double kept = 0;
  for (const NodeId id : pass.nodes) {
    Bytes made;
    for (const ValueId output : pass.graph[id].outputs) {
      made += align_up(pass.graph[output].type.bytes());
    }
    const double own = costs.nodes[id.at()].seconds;
    const bool dear = own * bytes > limits.dear * seconds * static_cast<double>(made.count);
    if (dear) kept += static_cast<double>(made.count);
    for (const ValueId output : pass.graph[id].outputs) {
      kept_values[output.at()] = dear && can_recompute(pass, output);
    }
  }
  if (kept > limits.little * bytes) kept_values.assign(kept_values.size(), false);
  return kept_values;
}

bool repeats_any_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                    const Schedule& schedule) {
  return std::ranges::any_of(schedule.calls, [&](const Call& call) {
    return call.recompute && std::ranges::any_of(pass.graph[call.node].outputs, [&](ValueId made) {
             return kept_values[made.at()];
           });
  });
}

Schedule keeping_all_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                        const Schedule& schedule) {
  Drops drops = drops_of(pass, schedule);
  for (std::vector<ValueId>& dropped : drops) {
    std::erase_if(dropped, [&](ValueId value) { return kept_values[value.at()]; });
  }
  return schedule_dropping(pass, drops);
}

}  // namespace thimble
