#include "pipeline/pricing.h"

#include "execute/costs.h"
#include "execute/costs_path.h"
#include "plan/make_plan.h"

namespace thimble {

Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend) {
  const std::string path = costs_to_read(recipe.costs, recipe.device);
  if (path.empty()) return gather_costs(graph, backend);
  const CostFile file = read_costs(path);
  const auto machine = file.find(backend.machine());
  if (machine == file.end()) return gather_costs(graph, backend);
  const CostTable& table = machine->second;
  Costs costs = gather_costs(graph, backend, table);
  const auto step = table.lower_bound(kWholeStep);
  if (step == table.end() || op_of_key(step->first) != kWholeStep) return costs;
  const auto whole = table.find(whole_step_key(recipe, backend));
  if (whole != table.end() && whole->second.modelled > 0) {
    costs.share = whole->second.seconds / whole->second.modelled;
    for (NodeCost& node : costs.nodes) node.seconds *= costs.share;
  }
  return costs;
}

std::string whole_step_key(const Recipe& recipe, const Backend& backend) {
  return fmt::format("{}({}) by {} streams", kWholeStep, timed_text(completed(recipe, backend)),
                     backend.streams());
}

Plan priced_as_a_whole(const Variant& full, const Variant* rest) {
  Plan plan = full.plan;
  if (rest == nullptr) return plan;
  const PhaseCost of_full = cost_of(full.model.graph, full.costs, plan, Phase::each);
  const PhaseCost of_rest = cost_of(rest->model.graph, rest->costs, rest->plan, Phase::each);
  plan.predicted_seconds += of_rest.seconds - of_full.seconds;
  plan.flops += of_rest.flops - of_full.flops;
  plan.extra_flops += of_rest.extra_flops - of_full.extra_flops;
  return plan;
}

}  // namespace thimble
