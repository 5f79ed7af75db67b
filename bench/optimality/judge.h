// The verdict of the judges on a case: the smallest and largest budgets worth asking about, and the
// best step within a budget. Solving takes minutes, so verdicts can be kept in a file. They depend
// on no planner, and hold as long as the case's graph and costs stay the same.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "optimality/cases.h"
#include "optimality/exhaustive.h"
#include "optimality/integer_program.h"

namespace thimble {

// Sums of live bytes, not arenas.
struct BudgetRange {
  Bytes floor;     // no schedule holds less
  Bytes keep_all;  // nothing is computed twice

  // `percent` of the way from floor to keep_all, in whole units of the arena.
  Bytes at(int percent) const;
};

struct Verdict {
  std::string status;             // of the integer program: optimal, time limit, infeasible
  std::optional<double> seconds;  // of its best step
  double bound = 0;               // no solution of the program takes less
  double solver_seconds = 0;
  Bytes live, arena;                         // of its best step, laid out by us
  std::optional<double> exhaustive_seconds;  // of the best step of all; nothing: search gave up
};

class Judge {
 public:
  // `cache`: a file to read verdicts from and add new ones to; empty: none.
  Judge(std::string cache, SolverLimits limits);

  BudgetRange range(const OptimalityCase& each);
  // Every solution is laid out and verified as a plan; throws InternalError if one is unsound,
  // holds more than the budget, or costs other than the solver says.
  Verdict verdict(const OptimalityCase& each, Bytes budget);

 private:
  Verdict solve(const OptimalityCase& each, Bytes budget) const;
  void save() const;

  const std::string cache_;
  const SolverLimits limits_;
  nlohmann::json known_;  // by fingerprint of a case
};

}  // namespace thimble
