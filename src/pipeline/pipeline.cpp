#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "pipeline/variant_order.h"
#include "plan/bytes/spread.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"

namespace thimble {
namespace {

// A variant of the recipe's step, all but its plan.
std::unique_ptr<Variant> make_variant(const Recipe& recipe, const VariantShape& shape,
                                      Backend& backend) {
  TrainingGraph training = make_graph(recipe, shape);
  auto variant = std::make_unique<Variant>(
      Variant{.shape = shape, .model = std::move(training.model), .scalars = training.scalars});
  variant->costs = costs_of(recipe, variant->model.graph, backend);
  return variant;
}

// The first variant: the one whose arena the others share.
PlanResult plan_first(const Recipe& recipe, const VariantShape& shape, const Schedule* chosen,
                      PlannedTraining& result) {
  if (recipe.codec.automatic && !recipe.codec.chosen) {
    result.variants.push_back(std::make_unique<Variant>(Variant{.shape = shape, .model = {}}));
    return plan_encoded(recipe, *result.backend, *result.variants.front(), result.recipe.codec);
  }
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  allowed_tier(recipe, result.graph(), recipe.codec);
  const PlanRequest request = request_for(recipe, result.graph(), result.full().costs);
  return chosen != nullptr ? lay_out_within(request, *chosen) : make_plan(request);
}

// Recomputing more changes no bit, so where the planner asked for does not fit, the one that goes by a
// budget may; of batches by tokens only `at_last`, since another may go first. False: it does not fit.
bool plan_other(const Recipe& recipe, const VariantShape& shape, PlannedTraining& result,
                bool at_last) {
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  const std::string policies[] = {result.plan().policy, "optimal"};
  const bool by_tokens = recipe.tokens > 0;
  const size_t tried = by_tokens && !at_last ? 1 : 2;
  const bool fits = plan_into(result.full(), *result.variants.back(),
                              std::span(policies).first(tried), result.microbatches.turns());
  user_check(fits || by_tokens || shape.rows == result.microbatches.rows,
             "the last microbatch, of {} rows, does not fit where those of {} rows do; choose a "
             "--microbatch that divides the batch of {}",
             shape.rows, result.microbatches.rows, result.microbatches.batch);
  internal_check(fits || by_tokens, "a shorter variant does not fit where a longer one does");
  return fits;
}

// Plans all of them, the first by itself; `misfit` is the place of one that does not fit its arena.
std::optional<Infeasible> plan_variants(const Recipe& recipe, const VariantOrder& order,
                                        const Schedule* chosen, PlannedTraining& result,
                                        size_t& misfit) {
  result.variants.clear();
  PlanResult planned = plan_first(recipe, order.shapes()[0], chosen, result);
  result.tier = allowed_tier(recipe, result.graph(), result.recipe.codec);
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
  Variant& first = *result.variants.front();
  first.plan = std::get<Plan>(std::move(planned));
  if (result.backend->streams() > 1) {
    first.plan = spread_apart(first.model.graph, first.costs, std::move(first.plan));
  }
  verify_plan(first.model.graph, first.costs, first.plan);
  Recipe others = recipe;
  others.codec = result.recipe.codec;
  for (misfit = 1; misfit < order.shapes().size(); ++misfit) {
    if (!plan_other(others, order.shapes()[misfit], result, order.at_last())) return std::nullopt;
  }
  misfit = 0;
  return std::nullopt;
}

}  // namespace

std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe,
                                                        const Schedule* first) {
  const auto start = std::chrono::steady_clock::now();
  check(recipe);
  PlannedTraining result;
  result.backend = make_backend(recipe.device, recipe.on);
  result.recipe = completed(recipe, *result.backend);
  result.microbatches = microbatches_of(recipe);
  VariantOrder order(step_shapes(recipe));
  for (size_t misfit = 1; misfit > 0;) {
    if (auto none = plan_variants(recipe, order, first, result, misfit)) return *none;
    if (misfit > 0) order.put_first(misfit, result.plan().arena);
    first = nullptr;  // another one goes first
  }
  if (recipe.tokens > 0) result.microbatches = alike(result.microbatches, result.full().shape.rows);
  result.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Plan priced_as_a_whole(const PlannedTraining& training) {
  Plan plan = priced_as_a_whole(training.full(), training.rest());
  const VariantShape most = step_shapes(training.recipe).front();
  const auto variant = std::ranges::find(training.variants, most, &Variant::shape);
  if (training.recipe.tokens == 0 || variant == training.variants.end()) return plan;
  const Plan& fullest = (*variant)->plan;
  plan.predicted_seconds = fullest.predicted_seconds;
  plan.flops = fullest.flops;
  plan.extra_flops = fullest.extra_flops;
  return plan;
}

}  // namespace thimble
