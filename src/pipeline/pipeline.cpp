#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "base/error.h"
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
PlanResult plan_first(const Recipe& recipe, const VariantShape& shape, PlannedTraining& result) {
  if (recipe.codec.automatic && !recipe.codec.chosen) {
    result.variants.push_back(std::make_unique<Variant>(Variant{.shape = shape, .model = {}}));
    return plan_encoded(recipe, *result.backend, *result.variants.front(), result.recipe.codec);
  }
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  allowed_tier(recipe, result.graph(), recipe.codec);
  return make_plan(request_for(recipe, result.graph(), result.full().costs));
}

// Recomputing more changes no bit, so where the planner asked for does not fit, the one that goes by a
// budget may. False: neither does.
bool plan_other(const Recipe& recipe, const VariantShape& shape, PlannedTraining& result) {
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  const std::string policies[] = {result.plan().policy, "optimal"};
  const bool fits =
      plan_into(result.full(), *result.variants.back(), policies, result.microbatches.count());
  if (recipe.tokens > 0) return fits;
  user_check(fits || shape.rows == result.microbatches.rows,
             "the last microbatch, of {} rows, does not fit where those of {} rows do; choose a "
             "--microbatch that divides the batch of {}",
             shape.rows, result.microbatches.rows, result.microbatches.batch);
  internal_check(fits, "a shorter variant does not fit where a longer one does");
  return true;
}

// Plans all of them, the first by itself. A variant that does not fit where the first does takes more
// than it, which their sizes do not always tell: `misfit` is its place.
std::optional<Infeasible> plan_shapes(const Recipe& recipe, std::span<const VariantShape> shapes,
                                      PlannedTraining& result, size_t& misfit) {
  result.variants.clear();
  PlanResult planned = plan_first(recipe, shapes[0], result);
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
  for (misfit = 1; misfit < shapes.size(); ++misfit) {
    if (!plan_other(others, shapes[misfit], result)) return std::nullopt;
  }
  misfit = 0;
  return std::nullopt;
}

}  // namespace

std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe) {
  const auto start = std::chrono::steady_clock::now();
  check(recipe);
  PlannedTraining result;
  result.backend = make_backend(recipe.device, recipe.on);
  result.recipe = completed(recipe, *result.backend);
  result.microbatches = microbatches_of(recipe);
  std::vector<VariantShape> shapes = step_shapes(recipe);
  for (size_t misfit = 1, tries = 0; misfit > 0; ++tries) {
    internal_check(tries <= shapes.size(), "no variant of the step takes the most memory");
    if (auto infeasible = plan_shapes(recipe, shapes, result, misfit)) return *infeasible;
    std::rotate(shapes.begin(), shapes.begin() + static_cast<ptrdiff_t>(misfit),
                shapes.begin() + static_cast<ptrdiff_t>(misfit) + (misfit > 0 ? 1 : 0));
  }
  result.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Plan priced_as_a_whole(const PlannedTraining& training) {
  return priced_as_a_whole(training.full(), training.rest());
}

}  // namespace thimble
