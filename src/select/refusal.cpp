#include "select/refusal.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"
#include "select/selection_limits.h"

namespace thimble {

Refusal refusal_of(const Recipe& recipe, Infeasible infeasible) {
  std::string sentence = fmt::format(
      "planner {} cannot do with {}: it needs {} ({} bytes); {}; give more --memory, or try "
      "another "
      "--planner (`thimble list planners`)",
      recipe.planner, to_string(recipe.memory.value_or(Bytes())), to_string(infeasible.min_bytes),
      infeasible.min_bytes.count, infeasible.why);
  return {.least = std::move(infeasible), .sentence = std::move(sentence)};
}

std::optional<Refusal> refused_by_weights(const Step& requested, NumericsTier allow, Bytes budget) {
  const Graph& graph = requested.model.graph;
  if (allow == NumericsTier::approximate) return std::nullopt;
  if (graph.nodes.size() <= kSelectionLimits.refused_nodes) return std::nullopt;
  Bytes weights;
  for (const Value& value : graph.values) {
    const bool stays = value.role == Role::weight || value.role == Role::optimizer_state ||
                       value.role == Role::frozen;
    if (stays && !value.producer.valid()) weights += align_up(value.type.bytes());
  }
  if (budget >= weights) return std::nullopt;
  allowed_tier(requested.recipe, graph, requested.recipe.codec);
  const PlanRequest request = requested.request();
  const Bytes enough = arena_of(request, schedule_without_recompute(request));
  Refusal refusal = {.least = {enough, "weights and optimizer state alone take that"},
                     .allow = allow,
                     .bound = weights,
                     .proved = true,
                     .searched = false};
  refusal.sentence = proved_sentence(refusal, budget);
  refusal.unlock.push_back(may_go_further(NumericsTier::approximate));
  add_unlocks(refusal, requested.recipe, graph);
  return refusal;
}

std::string proved_sentence(const Refusal& refusal, Bytes budget) {
  const Bytes bound = refusal.bound, enough = refusal.least.min_bytes;
  return fmt::format(
      "no plan fits {} with --allow {}: no plan is below {} ({} bytes); {}; everything kept, {} "
      "({} "
      "bytes) would do; --memory least finds the smallest plan",
      to_string(budget), name_of(*refusal.allow), to_string(bound), bound.count, refusal.least.why,
      to_string(enough), enough.count);
}

std::string may_go_further(NumericsTier tier) {
  return fmt::format("--allow {} may go further down", name_of(tier));
}

void add_unlocks(Refusal& refusal, const Recipe& recipe, const Graph& graph) {
  const OptimizerSpec& optimizer = recipe.optimizer;
  if (rule_of(optimizer).momentum && !rule_of(optimizer).folds && optimizer.momentum > 0) {
    refusal.unlock.push_back("--optimizer sgd folds gradients into its momentum");
  }
  const bool mixes =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->mixes_rows; });
  Recipe copy = recipe;
  if (mixes && refusal.allow != NumericsTier::exact &&
      find_field(fields_of(copy), "norm") != nullptr) {
    refusal.unlock.push_back("--norm group makes microbatches equivalent");
  }
}

}  // namespace thimble
