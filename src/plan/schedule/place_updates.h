// Puts updates (optimizer, running statistics) into a schedule as early as is sound: after their
// inputs are made, and after the last reader of the values that they overwrite.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

// True for a node that makes the next version of a persistent value.
bool is_update(const Node& node);

// `calls`: everything but updates, in order, recomputation included. Returns the whole schedule.
// Updates of the `epilogue` phase stay in that phase.
Schedule place_updates(const Graph& graph, const std::vector<Call>& calls);

}  // namespace thimble
