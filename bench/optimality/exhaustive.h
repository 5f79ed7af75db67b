// The second judge: best-first search over everything a step can do. A state is which task comes
// next and which values are there; a move drops no more than it must, then runs the next task or an
// earlier one again. (To have a value is never worse than not to: it can still be dropped later.)
// It shares the problem with the integer program and nothing else. It is not bound to stages, so it
// can only do as well or better, and its result is exact if it ends.
#pragma once

#include <optional>

#include "optimality/problem.h"

namespace thimble {

struct SearchLimits {
  size_t states = 4'000'000;
};

// The cheapest runs whose live bytes never exceed `budget`. `feasible` is false when there are
// none; `finished` is false when the limit came first.
struct SearchResult {
  bool finished = false;
  bool feasible = false;
  Runs runs;
  size_t states = 0;  // seen
};
SearchResult cheapest_runs(const Problem& problem, Bytes budget, const SearchLimits& limits = {});

// A peak of live bytes that some run keeps to, and that none undercuts by more than a thousandth.
// Where searches for less reach the limit, it is the smallest that was found.
Bytes smallest_peak(const Problem& problem, const SearchLimits& limits = {.states = 200'000});

}  // namespace thimble
