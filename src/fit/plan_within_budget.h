// Plans as they are asked for, through whichever door: within a budget that chooses, or as typed.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>

#include "fit/first_times.h"
#include "fit/fit.h"

namespace thimble {

struct PlannedByBudget {
  PlannedTraining training;
  std::optional<FitReport> fit;  // where the budget chose
};

// Whether kernels of which no time is known are measured first: never, where a budget chooses, or always.
enum class Measuring : uint8_t { never, by_budgets, always };
// Told of what was measured, if anything was.
using OnMeasured = std::function<void(const FirstTimes& times)>;

// `said`: the fields that were typed. REQUIRES: the budget is in bytes (or kLeastMemory).
std::variant<PlannedByBudget, Infeasible, DoesNotFit> plan_within_budget(
    const Recipe& recipe, const Settings& said, Measuring measuring = Measuring::never,
    const OnMeasured& on_measured = {});

// In a sentence.
std::string why_not(const DoesNotFit& fault);

// The facts of a planned step, and what its budget chose.
nlohmann::json summary_of(const PlannedByBudget& planned);

// A run that goes on from a checkpoint in `out` keeps what its budget chose when it began; with another
// budget it recomputes more, or less, and has the same bits.
void resume_choices(const std::string& out, Recipe& recipe, const Settings& said);

}  // namespace thimble
