#include "pipeline/pricing.h"

#include "execute/costs.h"
#include "plan/make_plan.h"

namespace thimble {

Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend) {
  if (recipe.costs.empty()) return gather_costs(graph, backend);
  const CostFile file = read_costs(recipe.costs);
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

namespace {

// All of an optimizer that decides what its updates do, rates apart.
std::string update_of(const OptimizerSpec& spec) {
  std::string text = fmt::format("{} {}", static_cast<int>(spec.kind), spec.state_bits);
  if (spec.fold) text += " folded";
  if (spec.clip_norm > 0) text += spec.clip_two_pass ? " clipped twice" : " clipped";
  return text;
}

}  // namespace

std::string whole_step_key(const Recipe& recipe, const Backend& backend) {
  const ModelOptions options = complete_options(recipe);
  const Microbatches parts = microbatches_of(recipe);
  std::string image;
  for (int axis = 0; axis < options.image.rank(); ++axis) {
    image += fmt::format("{}{}", axis > 0 ? "," : " image ", options.image[axis]);
  }
  return fmt::format(
      "{}({} batch {} by {}{} classes {} layers {} hidden {} length {} at once {} {}{} norm {} "
      "dropout {} density {} codec {} optimizer {}) by {} streams",
      kWholeStep, options.name, parts.batch, parts.rows, image, options.classes, options.layers,
      options.hidden, options.length, options.steps_at_once, name_of(options.storage),
      options.master ? " master" : "", name_of(options.norm), options.dropout,
      recipe.sparsity.density, recipe.codec.automatic ? "none" : to_string(recipe.codec),
      update_of(recipe.optimizer), backend.streams());
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
