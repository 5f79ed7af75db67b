#include "survey/sweep.h"

#include <algorithm>
#include <cmath>

#include "plan/make_plan.h"
#include "plan/policy.h"
#include "plan/search/optimal_planner.h"
#include "plan/verify/verify_plan.h"

namespace thimble {

Frontier sweep(const Recipe& recipe, Machine& machine) {
  const Step step = build_step(recipe, largest_shape(recipe), machine);
  const Graph& graph = step.model.graph;
  allowed_tier(recipe, graph, recipe.codec);
  Frontier frontier = {graph.name, step.costs.source, {}};
  PlanRequest request = step.request();
  const auto add = [&](const Plan& plan, Bytes budget) {
    verify_plan(graph, step.costs, plan);
    const double once = plan.flops - plan.extra_flops;
    frontier.points.push_back({.policy = plan.policy,
                               .budget = budget,
                               .arena = plan.arena,
                               .milliseconds = plan.predicted_seconds * 1e3,
                               .extra_flops_ratio = once > 0 ? plan.extra_flops / once : 0});
  };
  for (const Policy* policy : all_policies()) {
    request.policy = policy->name;
    if (!policy->traits.by_budget) add(std::get<Plan>(make_plan(request)), {});
  }
  request.policy = budget_policy();
  OptimalPlanner planner(request);  // one for all budgets
  const Bytes floor = planner.choose(Bytes(1)).arena;
  const Bytes most = planner.choose({}).arena;  // with this, everything is kept
  constexpr int kBudgets = 16;
  const double ratio = static_cast<double>(most.count) / static_cast<double>(floor.count);
  for (int i = 0; i <= kBudgets; ++i) {
    const double scale = std::pow(ratio, static_cast<double>(i) / kBudgets);
    const auto asked = static_cast<int64_t>(static_cast<double>(floor.count) * scale);
    const Bytes budget = std::clamp(Bytes(asked), floor, most);
    add(lay_out(request, *planner.choose(budget).schedule), budget);
  }
  return frontier;
}

}  // namespace thimble
