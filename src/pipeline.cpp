#include "pipeline.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "autodiff/autodiff.h"
#include "base/error.h"
#include "execute/costs.h"
#include "graph/builder.h"
#include "plan/make_plan.h"
#include "plan/verify_plan.h"

namespace thimble {

TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks) {
  TrainingGraph training;
  training.model = build_model(options);
  Graph& graph = training.model.graph;

  std::vector<ValueId> weights;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].role == Role::weight) weights.push_back(make_id<ValueId>(v));
  }
  const ValueId one = Builder(graph).constant(1, graph[training.model.loss].type);
  const GradientRoot root = {training.model.loss, one};
  const std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, weights);
  training.scalars = add_updates(graph, weights, gradients, optimizer);
  apply_marks(graph, marks);
  verify_graph(graph);
  return training;
}

Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend) {
  if (recipe.costs.empty()) return gather_costs(graph, backend);
  const CostFile file = read_costs(recipe.costs);
  const auto machine = file.find(backend.machine());
  return gather_costs(graph, backend, machine != file.end() ? machine->second : CostTable());
}

std::variant<PlannedStepProgram, Infeasible> plan_training(const Recipe& recipe) {
  const auto start = std::chrono::steady_clock::now();
  PlannedStepProgram result;
  result.backend = make_backend(recipe.device, recipe.threads);
  result.training =
      std::make_unique<TrainingGraph>(
          make_training_graph(recipe.model, recipe.optimizer, recipe.marks));
  const Graph& graph = result.training->model.graph;
  result.costs = costs_of(recipe, graph, *result.backend);

  PlanResult planned = make_plan({.graph = graph,
                                  .costs = result.costs,
                                  .budget = recipe.memory,
                                  .policy = recipe.planner});
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
  result.plan = std::move(std::get<Plan>(planned));
  verify_plan(graph, result.costs, result.plan);
  result.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::unique_ptr<EvaluationPlan> plan_evaluation(const PlannedStepProgram& training) {
  const Graph& trained = training.training->model.graph;
  std::unordered_map<std::string, Bytes> home;  // of persistent values, by name
  Bytes reserved;
  for (size_t v = 0; v < trained.values.size(); ++v) {
    const Value& value = trained.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    home[value.name] = training.plan.sources[v];
    reserved = std::max(reserved, align_up(training.plan.sources[v] + value.type.bytes()));
  }

  ModelOptions options = training.training->model.options;
  options.training = false;
  for (;; options.batch = (options.batch + 1) / 2) {
    auto evaluation = std::make_unique<EvaluationPlan>();
    evaluation->model = build_model(options);
    const Graph& graph = evaluation->model.graph;
    std::vector<Bytes> fixed(graph.values.size(), Bytes(-1));
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const Value& value = graph.values[v];
      // Constants of the forward pass (an LSTM's first state) may have another batch here.
      const auto at = home.find(value.name);
      if (!value.producer.valid() && is_persistent(value.role) && at != home.end()) {
        fixed[v] = at->second;
      }
    }
    evaluation->costs = gather_costs(graph, *training.backend);
    PlanResult planned = make_plan({.graph = graph,
                                    .costs = evaluation->costs,
                                    .budget = training.plan.arena,
                                    .fixed_sources = fixed,
                                    .reserved = reserved});
    if (auto* plan = std::get_if<Plan>(&planned)) {
      evaluation->plan = std::move(*plan);
      verify_plan(graph, evaluation->costs, evaluation->plan);
      return evaluation;
    }
    internal_check(options.batch > 1, "evaluation does not fit where training does");
  }
}

}  // namespace thimble
