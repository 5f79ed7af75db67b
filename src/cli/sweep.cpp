#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "cli/options.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "plan/verify_plan.h"
#include "report/frontier.h"

namespace thimble {
namespace {

constexpr int kBudgets = 16;

class Sweep {
 public:
  explicit Sweep(const Recipe& recipe)
      : backend_(make_backend(recipe.device, recipe.threads)),
        graphs_(make_step_graphs(recipe)),
        costs_(costs_of(recipe, graph(), *backend_)) {}

  const Graph& graph() const { return graphs_.full.model.graph; }
  const Costs& costs() const { return costs_; }

  std::vector<FrontierPoint> run() {
    for (const Policy* policy : all_policies()) {
      if (policy->name != "optimal") plan(std::string(policy->name), {});
    }
    Bytes most;  // with this, `optimal` keeps everything
    for (const FrontierPoint& point : points_) {
      if (point.policy == "keep_all") most = point.arena;
    }
    const Bytes floor = plan("optimal", Bytes(1));  // refused, and says how little would do
    const double ratio = static_cast<double>(most.count) / static_cast<double>(floor.count);
    for (int i = 0; i <= kBudgets; ++i) {
      const double scale = std::pow(ratio, static_cast<double>(i) / kBudgets);
      plan("optimal", std::max(floor, Bytes(static_cast<int64_t>(
                                          static_cast<double>(floor.count) * scale))));
    }
    return points_;
  }

 private:
  // Adds the plan's point, and returns its arena; of an infeasible one, the least that would do.
  Bytes plan(const std::string& policy, std::optional<Bytes> budget) {
    const PlanResult result = make_plan({.graph = graph(),
                                         .costs = costs_,
                                         .budget = budget,
                                         .policy = policy,
                                         .microbatches = graphs_.microbatches.count()});
    if (const auto* infeasible = std::get_if<Infeasible>(&result)) return infeasible->min_bytes;
    const Plan& found = std::get<Plan>(result);
    verify_plan(graph(), costs_, found);
    FrontierPoint point;
    point.policy = policy;
    point.budget = budget.value_or(Bytes());
    point.arena = found.arena;
    point.milliseconds = found.predicted_seconds * 1e3;
    const double once = found.flops - found.extra_flops;
    point.extra_flops_ratio = once > 0 ? found.extra_flops / once : 0;
    points_.push_back(point);
    return found.arena;
  }

  std::unique_ptr<Backend> backend_;
  StepGraphs graphs_;  // a smaller last microbatch is planned into the arena of the others
  Costs costs_;
  std::vector<FrontierPoint> points_;
};

}  // namespace

int sweep(const Recipe& recipe, bool json, const std::string& picture) {
  Sweep all(recipe);
  const std::vector<FrontierPoint> points = all.run();
  const std::string title =
      fmt::format("{}: memory against predicted time ({})", all.graph().name, all.costs().source);
  if (!picture.empty()) write_file(picture, frontier_svg(title, points));
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const FrontierPoint& p : points) {
      list.push_back({{"planner", p.policy},
                      {"budget_bytes", p.budget.count},
                      {"arena_bytes", p.arena.count},
                      {"predicted_step_ms", p.milliseconds},
                      {"extra_flops_ratio", p.extra_flops_ratio}});
    }
    print_json({{"model", all.graph().name},
                {"device", recipe.device},
                {"costs", all.costs().source},
                {"points", list}});
    return kOk;
  }
  fmt::print("{}\n{}\n{}", title, frontier_table(points), frontier_plot(points));
  return kOk;
}

}  // namespace thimble
