#include "pipeline/variant.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"
#include "plan/verify/verify_shared_arena.h"

namespace thimble {
namespace {

// What a plan leaves for others in the same arena: where its values are, by name, and the first byte
// above them.
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
  for (const PlannedCall& step : plan.calls) {
    const Node& node = graph[step.node];
    for (size_t k = 0; k < node.outputs.size() && with_sums && node.phase == Phase::begin; ++k) {
      residents.add(graph[node.outputs[k]], step.outputs[k]);
    }
  }
  return residents;
}

// A request whose persistent values and `begin` results are where the residents of that name are.
// Constants of the forward pass (an LSTM's first state) may have other rows, and so another name.
PlanRequest request_above(const Residents& residents, const Graph& graph, const Costs& costs,
                          Bytes arena) {
  PlanRequest request = {.graph = graph, .costs = costs, .budget = arena};
  request.reserved = residents.reserved;
  request.fixed.assign(graph.values.size(), Bytes(-1));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool begun = value.producer.valid() && graph[value.producer].phase == Phase::begin;
    const bool kept = !value.producer.valid() && is_persistent(value.role);
    const auto at = residents.home.find(value.name);
    if ((begun || kept) && at != residents.home.end()) request.fixed[v] = at->second;
  }
  return request;
}

}  // namespace

PlanRequest request_for(const Recipe& recipe, const Graph& graph, const Costs& costs) {
  return {.graph = graph,
          .costs = costs,
          .budget = recipe.memory,
          .policy = recipe.planner,
          .microbatches = microbatches_of(recipe).turns()};
}

bool plan_into(const Variant& first, Variant& variant, std::span<const std::string> policies,
               int microbatches) {
  const Graph& graph = variant.model.graph;
  const bool of_step =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.phase == Phase::begin; });
  PlanRequest request = request_above(residents_of(first.model.graph, first.plan, of_step), graph,
                                      variant.costs, first.plan.arena);
  request.microbatches = microbatches;
  for (const std::string& policy : policies) {
    request.policy = policy;
    PlanResult planned = make_plan(request);
    if (!std::holds_alternative<Plan>(planned)) continue;
    variant.plan = std::get<Plan>(std::move(planned));
    verify_plan(graph, variant.costs, variant.plan);
    const auto fault = find_disagreement(first.model.graph, first.plan, graph, variant.plan);
    internal_check(!fault, "a variant does not go with the first one: " + fault.value_or(""));
    return true;
  }
  return false;
}

}  // namespace thimble
