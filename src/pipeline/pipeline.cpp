#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace thimble {
namespace {

// The first step: the one whose arena the others share.
std::optional<Infeasible> plan_first(Selection selected, Bytes room, PlannedTraining& all) {
  all.steps.clear();
  all.steps.push_back(std::make_unique<PlannedStep>(PlannedStep{std::move(selected.step), {}}));
  PlannedStep& first = *all.steps.front();
  all.recipe.codec = first.recipe.codec;
  all.tier = allowed_tier(first.recipe, first.model.graph, first.recipe.codec);
  return plan_alone(first, selected.schedule, room);
}

// Recomputing more changes no bit. So where the plan of the requested policy does not fit, the one
// for a budget may. For batches by tokens that is tried only `at_last`, since another shape may be
// planned first. False: no fit.
bool plan_other(const StepShape& shape, PlannedTraining& all, Bytes room, bool at_last) {
  all.steps.push_back(std::make_unique<PlannedStep>(
      PlannedStep{build_step(all.full().recipe, shape, *all.machine), {}}));
  const std::string policies[] = {all.plan().policy, std::string(budget_policy())};
  const size_t tried = all.recipe.tokens > 0 && !at_last ? 1 : 2;
  return plan_into_arena_of(all.full(), *all.steps.back(), std::span(policies).first(tried),
                            microbatches_of(all.recipe, shape.length).turns(), room);
}

// The most bytes of constants that one of the other steps has alone.
Bytes room_for_constants(const PlannedTraining& all) {
  Bytes most;
  for (const auto& step : all.steps) most = std::max(most, own_constants(all.full(), *step));
  return most;
}

Misfit rows_misfit(int64_t rows, const PlannedTraining& all) {
  return {fmt::format(
      "microbatches of {} rows do not fit where those of {} rows do; give more --memory, or "
      "choose a --microbatch that divides the batch of {}",
      rows, all.full().shape.rows, all.microbatches.batch)};
}

}  // namespace

std::variant<PlannedTraining, Infeasible, Misfit> plan_training(const Recipe& recipe,
                                                                std::shared_ptr<Machine> machine,
                                                                const Select& select) {
  const auto start = std::chrono::steady_clock::now();
  Recipe complete = completed(recipe, machine->backend());
  PlannedTraining all = {.recipe = std::move(complete),
                         .machine = std::move(machine),
                         .microbatches = microbatches_of(recipe)};
  std::vector<StepShape> shapes = step_shapes(recipe), largest_first = shapes;
  Bytes largest;
  Bytes room;  // for values that only later shapes keep, once they are known to need it

  // With the least memory for each, one shape after another may take a little more than the last.
  const int64_t last_try = recipe.tokens > 0 ? std::ssize(shapes) + 4 : 0;
  std::optional<Selection> first;
  for (int64_t tries = 0;; ++tries) {
    if (!first) first = select(shapes[0]);
    const std::optional<Schedule> schedule = first->schedule;
    if (auto none = plan_first(*std::exchange(first, {}), room, all)) return *std::move(none);
    const auto misfit = std::find_if_not(shapes.begin() + 1, shapes.end(), [&](const auto& shape) {
      return plan_other(shape, all, room, tries >= last_try);
    });
    if (misfit == shapes.end()) break;
    if (tries >= last_try) {
      const Bytes more = room_for_constants(all);
      if (more <= room) return rows_misfit(misfit->rows, all);
      room = more;
      first = Selection{std::move(static_cast<Step&>(*all.steps.front())), schedule};
      continue;
    }
    if (all.plan().arena > largest) {
      largest = all.plan().arena;
      largest_first = shapes;
    }
    std::rotate(shapes.begin(), misfit, misfit + 1);
    if (tries + 1 == last_try) shapes = largest_first;
  }
  all.microbatches = microbatches_of(recipe, all.full().shape.length);
  all.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

}  // namespace thimble
