// The path in front of training, for all entry points: a recipe is planned as typed, or techniques
// are chosen for its budget.
#pragma once

#include "select/refusal.h"
#include "select/technique_selector.h"

namespace thimble {

// When kernels without a measured time are profiled: if there is a budget, always or never. Several
// ranks never profile, since their times would differ.
enum class ProfileWhen : uint8_t { by_budgets, always, never };
// The recipe's machine. `explicit_settings`: the fields that the user set.
std::shared_ptr<Machine> open_machine(const Recipe& recipe, const Settings& explicit_settings,
                                      ProfileWhen profiles = ProfileWhen::by_budgets);

// Chooses and plans. `explicit_settings`: the fields that the user set. Kernels without a time are
// profiled first, where the machine may. UserError where a smaller last micro-batch does not fit.
// REQUIRES: the recipe was checked, its budget is in bytes (or kLeastMemory), and the machine was
// opened for it.
std::variant<PlannedTraining, Refusal> choose_and_plan(const Recipe& recipe,
                                                       const Settings& explicit_settings,
                                                       const std::shared_ptr<Machine>& machine,
                                                       const SearchLimits& limits = {});

// The entry point of C++ callers: checks the recipe and plans it as it is. UserError likewise.
std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe);
// The same, for several recipes on one machine. REQUIRES: the machine was opened for this recipe.
std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe,
                                                        const std::shared_ptr<Machine>& machine);

}  // namespace thimble
