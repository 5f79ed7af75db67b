#include "survey/sweep.h"

#include <algorithm>
#include <cmath>

#include "plan/make_plan.h"
#include "plan/policy.h"
#include "plan/search/optimal_planner.h"
#include "plan/verify/verify_plan.h"

namespace thimble {
namespace {

constexpr int kBudgets = 16;

class Sweep {
 public:
  explicit Sweep(const Recipe& recipe)
      : machine_(Machine::open(recipe)),
        step_(build_step(recipe, largest_shape(recipe), *machine_)) {}

  const Graph& graph() const { return step_.model.graph; }
  const Costs& costs() const { return step_.costs; }

  std::vector<FrontierPoint> run() {
    for (const Policy* policy : all_policies()) {
      if (policy->traits.by_budget) continue;
      const PlanRequest request = request_for(policy->name);
      add(std::get<Plan>(make_plan(request)), {});
    }
    const PlanRequest request = request_for(budget_policy());
    OptimalPlanner planner(request);  // one for all budgets
    const Bytes floor = planner.choose(Bytes(1)).arena;
    const Bytes most = planner.choose({}).arena;  // with this, everything is kept
    const double ratio = static_cast<double>(most.count) / static_cast<double>(floor.count);
    for (int i = 0; i <= kBudgets; ++i) {
      const double scale = std::pow(ratio, static_cast<double>(i) / kBudgets);
      const auto asked = static_cast<int64_t>(static_cast<double>(floor.count) * scale);
      const Bytes budget = std::clamp(Bytes(asked), floor, most);
      add(lay_out(request, *planner.choose(budget).schedule), budget);
    }
    return points_;
  }

 private:
  PlanRequest request_for(std::string_view policy) const {
    PlanRequest request = step_.request();
    request.policy = policy;
    return request;
  }

  void add(const Plan& plan, std::optional<Bytes> budget) {
    verify_plan(graph(), costs(), plan);
    FrontierPoint point;
    point.policy = plan.policy;
    point.budget = budget.value_or(Bytes());
    point.arena = plan.arena;
    point.milliseconds = plan.predicted_seconds * 1e3;
    const double once = plan.flops - plan.extra_flops;
    point.extra_flops_ratio = once > 0 ? plan.extra_flops / once : 0;
    points_.push_back(point);
  }

  std::shared_ptr<Machine> machine_;
  Step step_;  // others are planned into the arena of the first
  std::vector<FrontierPoint> points_;
};

}  // namespace

Frontier sweep(const Recipe& recipe) {
  Sweep all(recipe);
  allowed_tier(recipe, all.graph(), recipe.codec);
  return {all.graph().name, all.costs().source, all.run()};
}

}  // namespace thimble
