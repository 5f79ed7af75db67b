// The keep-or-recompute integer program of Jain et al. 2020 ("Checkmate"), solved by CBC.
//
// Stage t ends with the first run of task t. Before it, any repeatable task i < t may run again,
// each at most once and in order: the binary R[t,i]. Every (t,i) is a slot of one time line:
//
//   stage 0 | stage 1 | stage 2   | stage 3       | ...
//      0    |  0  1   |  0  1  2  |  0  1  2  3   |        (last of each: certain, R = 1)
//
// Between two slots that touch a value, a variable in [0,1] says whether it is there. Across the
// end of a stage that is the paper's S[t,i]. Where it falls after a slot, the difference is FREE.
// The memory of a slot is the paper's U. With binary R nothing else need be integral: a value must
// be there from the latest run of its maker to each reader, and need be nowhere else.
#pragma once

#include <optional>
#include <string>

#include "optimality/problem.h"

namespace thimble {

struct IntegerSolution {
  enum class Status : uint8_t { optimal, time_limit, infeasible } status = Status::infeasible;
  std::optional<Runs> runs;  // the best found
  double seconds = 0;        // of one step, by the solver's objective
  double bound = 0;          // no solution of the program takes less
  double solver_seconds = 0;
};

struct SolverLimits {
  double seconds = 60;
  bool verbose = false;
};

// The cheapest step whose live bytes never exceed `budget`.
IntegerSolution solve_integer_program(const Problem& problem, Bytes budget,
                                      const SolverLimits& limits);

std::string solver_version();

}  // namespace thimble
