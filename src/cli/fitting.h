// Plans as commands ask for them: within a budget that chooses, or as typed.
#pragma once

#include <optional>

#include "cli/options.h"
#include "fit/plan_within_budget.h"

namespace thimble {

// Whether kernels of which no time is known are measured first: always, or where a budget chooses.
enum class Measuring : uint8_t { by_budgets, always };

// Plans what was asked for; what a budget chose is said first, on stderr. Nothing, where nothing fits:
// that was reported in the form asked for, and the caller exits 3.
std::optional<PlannedByBudget> plan_asked(const Resolved& resolved, bool json,
                                          Measuring measuring = Measuring::by_budgets);

// The recipe, its budget in bytes: says what `auto` comes to.
Recipe with_budget_in_bytes(Recipe recipe);

}  // namespace thimble
