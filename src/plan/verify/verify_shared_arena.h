// The check of two plans that share an arena, such as training and evaluation of one run.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// REQUIRES: both plans are sound, and their graphs run in turn. Empty if each finds its kept values
// where it left them:
// - Weights, state, statistics and constants that both have lie at the same bytes, by name.
// - The second writes no kept value that only the first has.
// - Kept values that only the second has are constants, which are set before it runs.
// - A second plan with nodes of `prologue` takes part in steps that the first begins and ends. Then
//   the sums over micro-batches lie at the same bytes, too. A value that only one of them carries
//   from micro-batch to micro-batch is a constant.
// - Any other second plan runs between steps, where there are no such sums.
std::optional<std::string> find_disagreement(const Graph& graph, const Plan& plan,
                                             const Graph& other_graph, const Plan& other);

}  // namespace thimble
