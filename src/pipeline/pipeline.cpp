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
                      Bytes room, PlannedTraining& result) {
  if (recipe.codec.automatic && !recipe.codec.chosen && room > Bytes()) {
    Recipe again = recipe;  // by the codec that was chosen before there was to be room
    again.codec = result.recipe.codec;
    return plan_first(again, shape, chosen, room, result);
  }
  if (recipe.codec.automatic && !recipe.codec.chosen) {
    result.variants.push_back(std::make_unique<Variant>(Variant{.shape = shape, .model = {}}));
    return plan_encoded(recipe, *result.backend, *result.variants.front(), result.recipe.codec);
  }
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  allowed_tier(recipe, result.graph(), recipe.codec);
  PlanRequest request = request_for(recipe, shape, result.graph(), result.full().costs);
  request.reserved = room;
  return chosen != nullptr ? lay_out_within(request, *chosen) : make_plan(request);
}

// Recomputing more changes no bit, so where the planner asked for does not fit, the one that goes by a
// budget may; of batches by tokens only `at_last`, since another may go first. False: it does not fit.
bool plan_other(const Recipe& recipe, const VariantShape& shape, PlannedTraining& result,
                Bytes room, bool at_last) {
  result.variants.push_back(make_variant(recipe, shape, *result.backend));
  const std::string policies[] = {result.plan().policy, "optimal"};
  const size_t tried = recipe.tokens > 0 && !at_last ? 1 : 2;
  return plan_into(result.full(), *result.variants.back(), std::span(policies).first(tried),
                   microbatches_of(recipe, shape.length).turns(), room);
}

// What those planned so far keep by themselves, the most that one of them does.
Bytes room_for_constants(const PlannedTraining& result) {
  Bytes most;
  for (const auto& variant : result.variants) {
    most = std::max(most, own_constants(result.full(), *variant));
  }
  return most;
}

// Plans all of them, the first by itself; `misfit` is the place of one that does not fit its arena.
std::optional<Infeasible> plan_variants(const Recipe& recipe, const VariantOrder& order,
                                        const Schedule* chosen, Bytes room, PlannedTraining& result,
                                        size_t& misfit) {
  result.variants.clear();
  PlanResult planned = plan_first(recipe, order.shapes()[0], chosen, room, result);
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
    if (!plan_other(others, order.shapes()[misfit], result, room, order.at_last())) {
      return std::nullopt;
    }
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
  Bytes room;  // for what others than the first keep, once it is known that they need it
  for (size_t misfit = 1; misfit > 0;) {
    if (auto none = plan_variants(recipe, order, first, room, result, misfit)) return *none;
    if (misfit == 0) break;
    if (recipe.tokens > 0 && !order.at_last()) {
      order.put_first(misfit, result.plan().arena);
      first = nullptr;
      continue;
    }
    const VariantShape& shape = order.shapes()[misfit];
    const Bytes more = room_for_constants(result);
    user_check(
        more > room,
        "microbatches of {} rows do not fit where those of {} rows do; give more --memory, or "
        "choose a --microbatch that divides the batch of {}",
        shape.rows, result.full().shape.rows, result.microbatches.batch);
    room = more;
  }
  result.microbatches = microbatches_of(recipe, result.full().shape.length);
  result.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

const Variant* PlannedTraining::rest_of(const Variant& variant) const {
  const VariantShape last = {.rows = microbatches_of(recipe, variant.shape.length).rest,
                             .length = variant.shape.length};
  const auto found = std::ranges::find(variants, last, [](const auto& v) { return v->shape; });
  return found == variants.end() ? nullptr : found->get();
}

Plan priced_as_a_whole(const PlannedTraining& training) {
  Plan plan = training.plan();
  const VariantShape most = step_shapes(training.recipe).front();
  for (const auto& variant : training.variants) {
    if (variant->shape != most) continue;
    const Plan whole = priced_as_a_whole(*variant, training.rest_of(*variant));
    plan.predicted_seconds = whole.predicted_seconds;
    plan.flops = whole.flops;
    plan.extra_flops = whole.extra_flops;
  }
  return plan;
}

}  // namespace thimble
