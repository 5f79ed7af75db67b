// Plans as they are asked for: within a budget that chooses, or as typed.
#pragma once

#include <optional>

#include "cli/options.h"
#include "comm/world.h"
#include "select/choose.h"

namespace thimble {

// Whether kernels of which no time is known are profiled: where a budget chooses, or always.
enum class Profiles : uint8_t { by_budgets, always };

// The machine of what was asked for. Of several ranks none profiles, since their times would differ.
std::shared_ptr<Machine> open_machine(const Request& request,
                                      Profiles profiles = Profiles::by_budgets,
                                      World* world = nullptr);

// Plans what was asked for; what a budget chose is said first, on stderr. Nothing, where nothing fits:
// that was reported in the form asked for, and the caller exits 3.
// Of several ranks each plans for itself, to the same plan, and the first one speaks.
std::optional<PlannedTraining> plan_asked(Request& request, const std::shared_ptr<Machine>& machine,
                                          bool json, World* world = nullptr);

// Puts the budget in bytes into the request: says what `auto` comes to.
void settle_budget(Request& request, Machine& machine, World* world = nullptr);

}  // namespace thimble
