// optimal: the fastest schedule found whose arena fits the budget (see plan/search/optimal_planner.h).
#include "plan/policy.h"
#include "plan/search/optimal_planner.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  OptimalPlanner planner(request);
  std::optional<Bytes> budget = request.budget;
  // Of the smallest plans, the fastest: what the arena itself as a budget would give.
  if (budget == kLeastMemory) budget = planner.choose(kLeastMemory).arena;
  return *planner.choose(budget).schedule;
}

}  // namespace

extern const Policy policy_optimal{.name = "optimal",
                                   .summary = "the fastest plan found that fits the budget",
                                   .schedule = schedule,
                                   .traits = {.by_budget = true}};

}  // namespace thimble
