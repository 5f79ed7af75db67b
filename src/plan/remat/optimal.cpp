// optimal: the fastest schedule found whose arena fits the budget (see plan/optimal_planner.h).
#include "plan/optimal_planner.h"
#include "plan/policy.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  return *OptimalPlanner(request).choose(request.budget).schedule;
}

}  // namespace

extern const Policy policy_optimal;
const Policy policy_optimal{"optimal", "the fastest plan found that fits the budget", schedule};

}  // namespace thimble
