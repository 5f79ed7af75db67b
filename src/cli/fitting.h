// Plans as commands ask for them: within a budget that chooses, or as typed.
#pragma once

#include <optional>

#include "cli/options.h"
#include "comm/world.h"
#include "fit/plan_within_budget.h"

namespace thimble {

// Plans what was asked for; what a budget chose is said first, on stderr. Nothing, where nothing fits:
// that was reported in the form asked for, and the caller exits 3.
// Of several ranks each plans for itself, to the same plan: none measures, since their times would
// differ, and the first one speaks.
std::optional<PlannedByBudget> plan_asked(const Resolved& resolved, bool json,
                                          Measuring measuring = Measuring::by_budgets,
                                          World* world = nullptr);

// The recipe, its budget in bytes: says what `auto` comes to. Of several ranks, the least that one of
// them has; those of one machine share its memory.
Recipe with_budget_in_bytes(Recipe recipe, World* world = nullptr);

}  // namespace thimble
