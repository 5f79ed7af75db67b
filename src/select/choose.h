// Plans as they are asked for, through whichever door: within a budget that chooses, or as typed.
#pragma once

#include "select/refusal.h"
#include "select/technique_selector.h"

namespace thimble {

// Whether kernels of which no time is known are profiled. Several ranks never are, since their times would
// differ.
enum class Profiles : uint8_t { by_budgets, always, never };
// The machine of what was asked for. `explicit_settings`: the fields that were typed.
std::shared_ptr<Machine> open_machine(const Recipe& recipe, const Settings& explicit_settings,
                                      Profiles profiles = Profiles::by_budgets);

// The whole path in front of training. `explicit_settings`: the fields that were typed. Kernels without a time are
// profiled first, where the machine may. UserError where a smaller last microbatch does not fit.
// REQUIRES: the recipe was checked, its budget is in bytes (or kLeastMemory), the machine is its own.
std::variant<PlannedTraining, Refusal> choose_and_plan(const Recipe& recipe,
                                                       const Settings& explicit_settings,
                                                       const std::shared_ptr<Machine>& machine,
                                                       const SearchLimits& limits = {});

// The front door of callers: a recipe as it is written, checked and planned. UserError likewise.
std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe);
// One of several on the same machine. REQUIRES: it is the recipe's own.
std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe,
                                                        const std::shared_ptr<Machine>& machine);

}  // namespace thimble
