// A candidate's step: what it costs when everything is computed once, what no plan of it can be below,
// and, when that is not enough to know, its planner. Its graph is there only while it is asked about: many
// candidates take little memory.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "fit/candidates.h"
#include "pipeline/pipeline.h"
#include "plan/search/optimal_planner.h"

namespace thimble {

// Seconds of a step that no plan of it brings within the budget.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

class FitStep {
 public:
  // UserError where the step cannot be built. `share`: what whole steps take of their kernels' times,
  // where nobody measured it for this recipe.
  FitStep(Candidate candidate, Backend& backend, double share);
  ~FitStep();
  FitStep(const FitStep&) = delete;  // its parts refer to each other
  FitStep& operator=(const FitStep&) = delete;

  const Candidate& candidate() const { return candidate_; }
  size_t nodes() const { return nodes_; }
  // Made again where they were let go; there until it is asked to let go.
  const Graph& graph() const { return built().training.model.graph; }
  const Costs& costs() const { return built().costs; }
  const PlanRequest& request() const { return built().request; }
  void let_go() const;
  Tier tier() const { return candidate_.tier; }

  // One of its plans.
  struct Pick {
    double seconds = 0;
    Bytes arena;
  };
  // Everything computed once: its time, what is live at its fullest, which its arena is not below,
  // and, laid out, the plan. Its arena has room for records of every length, all computed so.
  double once_seconds() const { return once_cost_.seconds - last_saves_; }
  Bytes once_peak() const { return once_cost_.live_peak; }
  const Pick& once() const;
  bool keeps_within(Bytes budget) const {
    return std::max(once_peak(), floor_) <= budget && once().arena <= budget;
  }
  Bytes persistent() const { return persistent_; }
  Bytes carried() const { return carried_; }  // from microbatch to microbatch, beside those
  // No plan is smaller, and none within the budget is faster.
  Bytes least_arena() const {
    return std::max(floor_, candidate_.recomputes ? largest_call_ : once_peak());
  }
  // With what stays, the call that needs most: no plan is smaller that computes things again.
  Bytes largest_call() const { return largest_call_; }
  void let_recompute() { candidate_.recomputes = true; }
  double least_seconds(Bytes budget) const;

  // The fastest within the budget; none: nothing is.
  std::optional<Pick> within(Bytes budget);
  // Its smallest.
  Pick smallest();
  // From here on nothing of it is within less: records of other lengths need that much.
  void raise_floor(Bytes least) { floor_ = std::max(floor_, least); }
  // How the plan within that arena, its own, goes.
  Schedule schedule_of(const Pick& pick);
  // Whether it may be planned in any way; else by the policy that was typed.
  bool is_optimal() const { return is_optimal_; }
  bool was_planned() const { return planner_ != nullptr; }

 private:
  // A forward node whose results the backward pass reads: what not computing it again keeps.
  struct Kept {
    double seconds = 0;
    Bytes bytes;
  };

  // The request refers to the other two.
  struct Built {
    TrainingGraph training;
    Costs costs;
    PlanRequest request;
    Built(const Recipe& recipe, Backend& backend, double share);
    Built(const Built&) = delete;
    Built& operator=(const Built&) = delete;
  };

  const Built& built() const;
  // Everything computed once of the records that the step is planned for first; in as little, those of
  // other lengths may have to compute things again.
  const Pick& first_once() const;
  double find_last_saves() const;
  // Of a plan in that arena, with the last microbatch as it will be planned there.
  double with_last(double seconds, const Schedule& schedule, Bytes arena);
  void find_bounds();
  void find_smallest();
  OptimalPlanner& planner();

  Candidate candidate_;
  Backend& backend_;
  const double share_;
  mutable std::unique_ptr<Built> built_;  // or let go
  const size_t nodes_;
  const bool is_optimal_;
  const ScheduleCost once_cost_;
  const double last_saves_;  // seconds, where the last microbatch is smaller than the others
  mutable std::optional<Pick> first_once_, once_;  // when they were asked for
  Bytes persistent_, carried_, largest_call_;
  Bytes kept_always_;       // of what the backward pass reads and nobody can compute again
  std::vector<Kept> kept_;  // cheapest byte first
  std::unique_ptr<OptimalPlanner> planner_;
  // The last microbatch, smaller than the others: made when it is asked for.
  struct Last;
  std::unique_ptr<Last> last_;
  std::optional<Pick> smallest_;  // whatever the floor
  Bytes floor_;
};

}  // namespace thimble
