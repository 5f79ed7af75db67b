#include "pipeline/check_plan_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "execute/costs.h"
#include "execute/costs_path.h"
#include "plan/verify/verify_plan.h"
#include "plan/verify/verify_shared_arena.h"

namespace thimble {
namespace {

// The graphs of the file's plans, in their order; empty: they are not those of its recipe's step.
std::vector<TrainingGraph> graphs_of(const PlanFile& file) {
  std::vector<StepShape> shapes = step_shapes(file.recipe);
  std::vector<TrainingGraph> graphs;
  for (const ShapedPlan& shaped : file.plans) {
    const auto found = std::ranges::find(shapes, shaped.shape);
    if (found == shapes.end()) return {};
    shapes.erase(found);
    graphs.push_back(make_graph(file.recipe, shaped.shape));
  }
  if (!shapes.empty()) graphs.clear();
  return graphs;
}

// "" of the first; "the last microbatch: ", or of which length.
std::string where_of(const PlanFile& file, size_t at) {
  if (at == 0) return "";
  const StepShape& shape = file.plans[at].shape;
  const bool last = shape.rows == microbatches_of(file.recipe, shape.length).rest;
  if (last && file.recipe.tokens == 0 && at == 1) return "the last microbatch: ";
  return fmt::format("records of length {}: ", shape.length);
}

// The first fault of the plans of these graphs, whatever device they are for. `costs_of_graph` returns the
// costs of its kernels.
template <class CostsOf>
std::optional<std::string> find_fault(const PlanFile& file,
                                      const std::vector<TrainingGraph>& graphs,
                                      CostsOf&& costs_of_graph) {
  const Plan& first = file.plans.front().plan;
  for (const auto& [shape, plan] : file.plans) {
    const int count = microbatches_of(file.recipe, shape.length).turns();
    if (plan.microbatches != count) {
      return fmt::format("the plan is for {} microbatches, not {}", plan.microbatches, count);
    }
  }
  if (graphs.empty()) return "a plan too many, or too few, or of another shape";
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Graph& graph = graphs[i].model.graph;
    const Plan& plan = file.plans[i].plan;
    std::optional<std::string> fault = find_fault(graph, costs_of_graph(graph), plan);
    if (!fault && plan.arena > first.arena) fault = "it needs more than the arena";
    if (!fault && i > 0) {
      fault = find_disagreement(graphs.front().model.graph, first, graph, plan);
    }
    if (fault) return where_of(file, i) + *fault;
  }
  const std::optional<Bytes> budget = file.recipe.memory;
  if (budget && budget->count > 0 && first.arena > *budget) {
    return fmt::format("its arena of {} bytes is more than its --memory {}", first.arena.count,
                       budget->count);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_fault(const PlanFile& file) {
  // Threads change kernels' scratch, so a file's own count is used, not this machine's.
  Recipe measured = file.recipe;
  measured.costs = kAutomaticCosts;
  const auto machine = Machine::open(measured);
  Backend& backend = machine->backend();
  const std::vector<TrainingGraph> graphs = graphs_of(file);
  if (backend
          .has_device_memory()) {  // measured times may have chosen other kernels than a guess would
    for (const TrainingGraph& graph : graphs) machine->price(measured, graph.model.graph);
  }
  return find_fault(file, graphs, [&](const Graph& graph) { return gather_costs(graph, backend); });
}

std::optional<std::string> find_fault_on_any_device(const PlanFile& file) {
  const auto backend = make_backend(planning_device(), file.recipe.on);
  return find_fault(file, graphs_of(file), [&](const Graph& graph) {
    Costs costs = gather_costs(graph, *backend);
    for (NodeCost& cost : costs.nodes) cost.workspace = Bytes();
    costs.source.clear();
    return costs;
  });
}

void check_on_any_device(const PlanFile& file, const std::string& where) {
  const std::optional<std::string> fault = find_fault_on_any_device(file);
  user_check(!fault, "the plan in '{}' is unsound: {}", where, fault.value_or(""));
}

void save_plan(const std::string& path, const PlannedTraining& planned) {
  std::vector<ShapedPlan> plans;
  for (const auto& step : planned.steps) plans.push_back({step->shape, step->plan});
  save_plan(path, planned.recipe, plans, planned.report);
}

}  // namespace thimble
