// A bound on the time of every plan of a step within a budget, for bench/limits.cpp.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

// Between the forward and the backward pass, a value that is read later is there, or it is recomputed
// later, and so is each input of a recomputed node. The least time of that within the budget, with
// fractions of values allowed, is no more than that of any plan. One for each budget, in seconds of a
// step.
std::vector<double> least_seconds(const Graph& graph, const Costs& costs,
                                  const std::vector<Bytes>& budgets);

}  // namespace thimble
