// A bound on the time of every plan of a step within a budget. bench/limits.cpp prints it, and
// tests/plan/least_seconds_test.cpp proves it.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

// Between the forward and the backward pass, a value that is read later is there, or it is recomputed
// later, and so is each input of a recomputed node. The least time of that within the budget, with
// fractions of values allowed, is no more than that of any plan. One for each budget, in seconds of a
// step of one micro-batch.
std::vector<double> least_seconds(const Graph& graph, const Costs& costs,
                                  const std::vector<Bytes>& budgets);

}  // namespace thimble
