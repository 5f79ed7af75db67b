#include "plan/search/crumbs.h"

#include <algorithm>

namespace thimble {

std::vector<bool> crumbs_of(const ForwardPass& pass, const Costs& costs) {
  constexpr double kDear = 32;      // times the average
  constexpr double kLittle = 5e-3;  // of all that the backward pass needs: all crumbs together
  double seconds = 0, bytes = 0;
  for (const NodeId id : pass.nodes) {
    seconds += costs.nodes[id.at()].seconds;
    for (const ValueId output : pass.graph[id].outputs) {
      if (!pass.read_backward[output.at()] || pass.bytes_of[output.at()] != output) continue;
      bytes += static_cast<double>(pass.graph[output].type.bytes().count);
    }
  }
  std::vector<bool> crumbs(pass.graph.values.size(), false);
  double kept = 0;
  for (const NodeId id : pass.nodes) {
    Bytes made;
    for (const ValueId output : pass.graph[id].outputs) {
      made += align_up(pass.graph[output].type.bytes());
    }
    const double own = costs.nodes[id.at()].seconds;
    const bool dear = own * bytes > kDear * seconds * static_cast<double>(made.count);
    if (dear) kept += static_cast<double>(made.count);
    for (const ValueId output : pass.graph[id].outputs) {
      crumbs[output.at()] = dear && can_recompute(pass, output);
    }
  }
  if (kept > kLittle * bytes) crumbs.assign(crumbs.size(), false);
  return crumbs;
}

bool repeats_crumbs(const ForwardPass& pass, const std::vector<bool>& crumbs,
                    const Schedule& schedule) {
  return std::ranges::any_of(schedule.steps, [&](const Step& step) {
    return step.recompute && std::ranges::any_of(pass.graph[step.node].outputs,
                                                 [&](ValueId made) { return crumbs[made.at()]; });
  });
}

Schedule keeping_crumbs(const ForwardPass& pass, const std::vector<bool>& crumbs,
                        const Schedule& schedule) {
  Drops drops = drops_of(pass, schedule);
  for (std::vector<ValueId>& dropped : drops) {
    std::erase_if(dropped, [&](ValueId value) { return crumbs[value.at()]; });
  }
  return schedule_dropping(pass, drops);
}

}  // namespace thimble
