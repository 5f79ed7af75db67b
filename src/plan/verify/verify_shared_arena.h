// The check of two plans that share an arena: the variants of a run.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Of two sound plans in one arena, whose graphs run in turn: empty when each finds its kept values where it
// left them.
// - Weights, state, statistics and constants that both have lie at the same bytes, by name.
// - The second writes no kept value that only the first has.
// - Kept values that only the second has are constants, which are set before it runs.
// - A second plan with nodes of `prologue` takes part in steps that the first begins and ends. Then the sums
//   of a step lie at the same bytes, too, and neither carries anything but constants that the other does not.
// - Any other runs between steps, where there are no sums.
std::optional<std::string> find_disagreement(const Graph& graph, const Plan& plan,
                                             const Graph& other_graph, const Plan& other);

}  // namespace thimble
