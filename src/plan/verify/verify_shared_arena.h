// The check of two plans that share an arena: the variants of a run.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Of two sound plans in one arena, whose graphs run in turn: empty when each finds what it kept where
// it left it. Weights, state, statistics and constants that both have lie at the same bytes, by name;
// what only the first has is not written to by the second; what only the second has are constants,
// which are set before it runs. Where the second takes part in steps that the first begins and ends
// (it has nodes of `prologue`), the sums of a step lie at the same bytes, too, and neither carries
// anything but constants that the other does not; else it runs between steps, and sums are nothing
// to it.
std::optional<std::string> find_disagreement(const Graph& graph, const Plan& plan,
                                             const Graph& other_graph, const Plan& other);

}  // namespace thimble
