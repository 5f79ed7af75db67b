#include "select/choose.h"

#include <utility>

#include "base/error.h"
#include "pipeline/profiling_limits.h"
#include "select/encodings.h"
#include "select/profile.h"

namespace thimble {
namespace {

// Planned as typed. `requested`, if given: the step of the largest shape, nothing encoded.
std::variant<PlannedTraining, Infeasible> plan_as_requested(const Recipe& recipe,
                                                            const std::shared_ptr<Machine>& machine,
                                                            const SearchLimits& limits,
                                                            std::optional<Step> requested = {}) {
  const bool encodes = recipe.codec.automatic && !recipe.codec.chosen;
  auto planned = plan_training(recipe, machine, [&](const StepShape& shape) {
    Step step = requested ? *std::exchange(requested, {}) : build_step(recipe, shape, *machine);
    return encodes ? select_encoding(step, limits) : Selection{std::move(step)};
  });
  if (const auto* misfit = std::get_if<Misfit>(&planned)) user_error("{}", misfit->why);
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
  return std::get<PlannedTraining>(std::move(planned));
}

std::variant<PlannedTraining, Refusal> plan_chosen(const Recipe& recipe,
                                                   const Settings& explicit_settings,
                                                   const std::shared_ptr<Machine>& machine,
                                                   const SearchLimits& limits,
                                                   std::optional<Step> requested) {
  TechniqueSelector selector(recipe, explicit_settings, machine, limits);
  if (requested) selector.use(*std::move(requested));
  if (machine->may_profile()) {
    const Bytes budget =
        recipe.memory == kLeastMemory ? selector.smallest(selector.allow()).arena : *recipe.memory;
    refine_with_profile(selector, budget, *machine);
  }
  return selector.plan(*recipe.memory);
}

// Frees the kernels of candidates that were not chosen.
template <class Result>
Result keeping_its_kernels(Result planned) {
  if (const auto* training = std::get_if<PlannedTraining>(&planned)) {
    std::vector<const Step*> steps;
    for (const auto& step : training->steps) steps.push_back(step.get());
    training->machine->keep_kernels_of(steps);
  }
  return planned;
}

}  // namespace

std::shared_ptr<Machine> open_machine(const Recipe& recipe, const Settings& explicit_settings,
                                      ProfileWhen profiles) {
  const bool chooses = selects_techniques(recipe, explicit_settings);
  const bool may =
      profiles == ProfileWhen::always || (profiles == ProfileWhen::by_budgets && chooses);
  return Machine::open(recipe, may ? usual_profiling(recipe) : Profiling());
}

std::variant<PlannedTraining, Refusal> choose_and_plan(const Recipe& recipe,
                                                       const Settings& explicit_settings,
                                                       const std::shared_ptr<Machine>& machine,
                                                       const SearchLimits& limits) {
  const bool chooses = selects_techniques(recipe, explicit_settings);
  std::optional<Step> requested;
  if (chooses || machine->may_profile()) {
    requested = build_step(recipe, largest_shape(recipe), *machine);
  }
  if (chooses && *recipe.memory != kLeastMemory) {
    const NumericsTier allow = selected_tier(recipe, explicit_settings);
    if (auto refusal = refused_by_weights(*requested, allow, *recipe.memory)) {
      return *std::move(refusal);
    }
  }
  if (machine->may_profile()) {
    profile_requested(*requested, recipe.memory, chooses ? kProfilingLimits.requested_part : 1);
  }
  if (chooses) {
    return keeping_its_kernels(
        plan_chosen(recipe, explicit_settings, machine, limits, std::move(requested)));
  }
  auto planned =
      keeping_its_kernels(plan_as_requested(recipe, machine, limits, std::move(requested)));
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) {
    return refusal_of(recipe, std::move(*infeasible));
  }
  return std::get<PlannedTraining>(std::move(planned));
}

std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe) {
  check(recipe);
  return keeping_its_kernels(plan_as_requested(recipe, Machine::open(recipe), {}));
}

std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe,
                                                        const std::shared_ptr<Machine>& machine) {
  check(recipe);
  return keeping_its_kernels(plan_as_requested(recipe, machine, {}));
}

}  // namespace thimble
