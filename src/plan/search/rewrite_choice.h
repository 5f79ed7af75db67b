// Chooses between several rewrites of one step, each with all the schedules a policy finds for it,
// where some rewrites harm the numbers more than others.
//
// A plan is set aside when another of less harm takes no more memory and at most kWorthWaiting
// times as long. Of the rest, the fastest that fits the budget is taken. What is set aside does not
// depend on the budget; hence a smaller budget never gives a faster plan or a larger arena, and no
// plan is more than that factor slower than the fastest of all that fit.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plan/search/optimal_planner.h"

namespace thimble {

inline constexpr double kWorthWaiting = 1.05;

class RewriteChoice {
 public:
  // Less harm first; requests differ in graph and costs alone. REQUIRES: there is one; what they
  // refer to outlives the choice.
  struct Rewrite {
    PlanRequest request;
    double harm = 0;
  };
  explicit RewriteChoice(const std::vector<Rewrite>& rewrites);

  struct Pick {
    size_t rewrite = 0;
    double seconds = 0;
    Bytes arena;
  };
  // The fastest within the budget; where nothing is, the smallest.
  Pick choose(std::optional<Bytes> budget);
  // The plan of a pick; Infeasible, with the pick's arena, below it.
  PlanResult plan(const Pick& pick, std::optional<Bytes> budget);

 private:
  struct Option {
    PlanRequest request;
    double harm = 0;
    Pick fastest;                             // everything computed once
    std::unique_ptr<OptimalPlanner> planner;  // made when it is first needed
  };

  bool is_optimal() const { return options_.front().request.policy == "optimal"; }
  OptimalPlanner& planner_of(Option& option);
  Pick pick_of(size_t index, Bytes budget);
  std::optional<Pick> within(size_t index, Bytes budget);
  std::optional<Pick> best_of_first(size_t count, Bytes budget);
  bool is_set_aside(size_t index, const Pick& pick);

  std::vector<Option> options_;
  std::map<std::pair<size_t, int64_t>, std::optional<Pick>> known_;  // of best_of_first()
};

}  // namespace thimble
