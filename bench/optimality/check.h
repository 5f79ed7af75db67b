// Shows that the problem's memory model is the planner's: for any order of runs, the peak it
// predicts is the live peak of the plan laid out from them.
#pragma once

#include "optimality/cases.h"
#include "optimality/problem.h"

namespace thimble {

// The most bytes that are live at a step, by the rules in problem.h.
Bytes live_peak_of(const Problem& problem, const Runs& runs);

// Compares both for `trials` random orders. Throws InternalError where they differ.
void check_memory_model(const OptimalityCase& each, int trials);

}  // namespace thimble
