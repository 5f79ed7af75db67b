#include "pipeline/step.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "plan/bytes/spread_reuse.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"
#include "plan/verify/verify_shared_arena.h"

namespace thimble {
namespace {

// Values of a plan that others in the same arena share: their addresses, by name, and the first byte above
// them.
struct Residents {
  std::unordered_map<std::string, Bytes> home;
  Bytes reserved;

  void add(const Value& value, Bytes at) {
    home[value.name] = at;
    reserved = std::max(reserved, align_up(at + value.type.bytes()));
  }
};

// Values that are there from step to step and, for others that add to them, sums over microbatches.
Residents residents_of(const Graph& graph, const Plan& plan, bool with_sums) {
  Residents residents;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (!value.producer.valid() && is_persistent(value.role)) residents.add(value, plan.sources[v]);
  }
  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    for (size_t k = 0; k < node.outputs.size() && with_sums && node.phase == Phase::prologue; ++k) {
      residents.add(graph[node.outputs[k]], call.outputs[k]);
    }
  }
  return residents;
}

// A request whose persistent values and `prologue` results are where the residents of that name are.
// Constants of the forward pass (an LSTM's first state) may have other rows, and so another name.
PlanRequest request_above(const Residents& residents, const Graph& graph, const Costs& costs,
                          Bytes arena) {
  PlanRequest request = {.graph = graph, .costs = costs, .budget = arena};
  request.reserved = residents.reserved;
  request.fixed.assign(graph.values.size(), Bytes(-1));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool begun = value.producer.valid() && graph[value.producer].phase == Phase::prologue;
    const bool kept = !value.producer.valid() && is_persistent(value.role);
    const auto at = residents.home.find(value.name);
    if ((begun || kept) && at != residents.home.end()) request.fixed[v] = at->second;
  }
  return request;
}

// Constants of the step alone.
bool is_own(const Graph& first, const Value& value) {
  return !value.producer.valid() && value.role == Role::constant && !first.find(value.name).valid();
}

void put_own_constants_below(const Graph& first, PlanRequest& request) {
  Bytes at;
  for (size_t v = 0; v < request.graph.values.size(); ++v) {
    const Value& value = request.graph.values[v];
    if (!is_own(first, value)) continue;
    request.fixed[v] = at;
    at += align_up(value.type.bytes());
  }
}

// Whether the nodes of both are the same but for shapes: then a schedule of one is one of the other.
bool same_nodes(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) {
    return x.op == y.op && x.inputs == y.inputs && x.outputs == y.outputs &&
           x.accumulate == y.accumulate && x.phase == y.phase;
  });
}

// In steps of so many nodes a search takes a second and more.
constexpr size_t kSearchedOnce = 4'000;

// The plan of a large step that only differs in shapes from the first, and is about as large: by what was
// found for that one, where it fits.
std::optional<Plan> as_first(const PlannedStep& first, const StepShape& shape,
                             PlanRequest request) {
  const auto size = [](const StepShape& of) { return of.rows * std::max<int64_t>(of.length, 1); };
  request.policy = budget_policy();
  if (first.plan.policy != request.policy || request.graph.nodes.size() <= kSearchedOnce ||
      size(shape) * 10 < size(first.shape) * 9 || !same_nodes(first.model.graph, request.graph)) {
    return std::nullopt;
  }
  PlanResult laid_out = lay_out_within(request, schedule_of(first.plan));
  if (!std::holds_alternative<Plan>(laid_out)) return std::nullopt;
  return std::get<Plan>(std::move(laid_out));
}

// A plan by one of the policies, the first that has one.
std::optional<Plan> searched(PlanRequest request, std::span<const std::string> policies) {
  for (const std::string& policy : policies) {
    request.policy = policy;
    PlanResult planned = make_plan(request);
    if (std::holds_alternative<Plan>(planned)) return std::get<Plan>(std::move(planned));
  }
  return std::nullopt;
}

}  // namespace

PlanRequest Step::request(std::optional<Bytes> budget) const {
  internal_check(machine == nullptr || priced_at == machine->generation(),
                 "a step is planned by times that are none any more");
  return {.graph = model.graph,
          .costs = costs,
          .budget = budget,
          .policy = recipe.planner,
          .microbatches = microbatches_of(recipe, shape.length).turns()};
}

void Step::price() {
  costs = machine->price(recipe, model.graph);
  priced_at = machine->generation();
}

Step build_step(const Recipe& recipe, const StepShape& shape, Machine& machine) {
  TrainingGraph training = make_graph(recipe, shape);
  Step step = {.recipe = recipe,
               .shape = shape,
               .model = std::move(training.model),
               .scalars = training.scalars,
               .machine = &machine};
  step.price();
  return step;
}

Bytes own_constants(const PlannedStep& first, const PlannedStep& step) {
  Bytes all;
  for (const Value& value : step.model.graph.values) {
    if (is_own(first.model.graph, value)) all += align_up(value.type.bytes());
  }
  return all;
}

std::optional<Infeasible> plan_alone(PlannedStep& step, const std::optional<Schedule>& schedule,
                                     Bytes room) {
  const Graph& graph = step.model.graph;
  PlanRequest request = step.request(step.recipe.memory);
  request.reserved = room;
  PlanResult planned = schedule ? lay_out_within(request, *schedule) : make_plan(request);
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
  step.plan = std::get<Plan>(std::move(planned));
  if (step.machine->backend().streams() > 1) {
    step.plan = spread_reuse(graph, step.costs, std::move(step.plan));
  }
  verify_plan(graph, step.costs, step.plan);
  return std::nullopt;
}

bool plan_into_arena_of(const PlannedStep& first, PlannedStep& step,
                        std::span<const std::string> policies, int microbatches, Bytes room) {
  const Graph& graph = step.model.graph;
  const bool of_step = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return node.phase == Phase::prologue; });
  PlanRequest request = request_above(residents_of(first.model.graph, first.plan, of_step), graph,
                                      step.costs, first.plan.arena);
  request.microbatches = microbatches;
  if (own_constants(first, step) <= room) put_own_constants_below(first.model.graph, request);
  std::optional<Plan> plan = as_first(first, step.shape, request);
  if (!plan) plan = searched(request, policies);
  if (!plan) return false;
  step.plan = *std::move(plan);
  verify_plan(graph, step.costs, step.plan);
  const auto fault = find_disagreement(first.model.graph, first.plan, graph, step.plan);
  internal_check(!fault, "a variant does not go with the first one: " + fault.value_or(""));
  return true;
}

}  // namespace thimble
