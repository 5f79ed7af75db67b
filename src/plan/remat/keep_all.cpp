// keep_all: every value is computed once and kept until its last reader. The ordinary plan, and the
// yardstick of every other.
#include "plan/place_updates.h"
#include "plan/policy.h"

namespace thimble {
namespace {

std::variant<Schedule, Infeasible> schedule(const PlanRequest& request) {
  std::vector<Step> steps;
  for (size_t n = 0; n < request.graph.nodes.size(); ++n) {
    if (!is_update(request.graph.nodes[n])) steps.push_back({make_id<NodeId>(n), false});
  }
  return place_updates(request.graph, steps);
}

}  // namespace

extern const Policy policy_keep_all;
const Policy policy_keep_all{"keep_all", "compute once, keep until the last reader", schedule};

}  // namespace thimble
