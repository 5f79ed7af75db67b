// A candidate's step as an option of the selector: its cost without recomputation, lower bounds,
// and, if these do not decide, its planner. The graph can be released and is built again on demand,
// so many candidates take little memory.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/pipeline.h"
#include "plan/search/optimal_planner.h"
#include "select/bounds.h"
#include "select/candidates.h"
#include "select/option.h"

namespace thimble {

// Facts about a step without its graph. Options of the same step in several tiers share them.
struct OptionFacts {
  bool refused = false;  // it cannot be built
  StepShape shape = {};
  size_t nodes = 0;       // 0: nothing is known yet
  double last_saves = 0;  // seconds that a smaller last micro-batch saves
  Bounds bounds = {};
  std::optional<PlanPoint> first_without_recompute = {}, without_recompute = {},
                           least = {};  // once they were asked for
  std::optional<Schedule> least_schedule = {};
};
using OptionFactsByFlags = std::map<std::string, OptionFacts>;

class StepOption final : public Option {
 public:
  // The candidate's step of its largest shape. Its plans leave room for records of every length and
  // for a smaller last micro-batch. UserError where the step cannot be built.
  StepOption(const Candidate& candidate, Machine& machine);
  // `facts` of the step: read, or filled in. `step`: null where it is to be built. REQUIRES: the facts
  // outlive the option.
  StepOption(Candidate candidate, Machine& machine, OptionFacts& facts, const SearchLimits& limits,
             std::unique_ptr<Step> step = nullptr);
  // The same for a step that was built. `one_shape`: no room for other shapes.
  StepOption(Candidate candidate, Step step, bool one_shape = false,
             const SearchLimits& limits = {});
  ~StepOption() override;
  StepOption(const StepOption&) = delete;  // its parts refer to each other
  StepOption& operator=(const StepOption&) = delete;

  const Candidate& candidate() const { return candidate_; }
  const Bounds& bounds() const { return facts_.bounds; }
  size_t nodes() const { return facts_.nodes; }
  // Whether the `optimal` policy plans it; else the policy that the recipe names.
  bool by_budget() const { return by_budget_; }
  bool was_planned() const { return planner_ != nullptr; }
  void let_recompute() { candidate_.recomputes = true; }
  // REQUIRES: no plan was asked for yet.
  void search_less(double part) { scale_searches(limits_, part); }

  // The node at which no plan takes less than the bound.
  const std::string& needs_most_at();

  // Built again where it was released.
  const Step& step();
  void release_graph();
  // Moves the step out, or copies it if the planner refers to it.
  Step take();

  NumericsTier tier() const override { return candidate_.tier; }
  double risk() const override { return candidate_.risk; }
  Bytes least_arena() const override { return std::max(floor_, bound()); }
  // The same, whatever raise_floor() said.
  Bytes bound() const {
    return candidate_.recomputes ? bounds().least : bounds().without_recompute.live_peak;
  }
  double least_seconds(Bytes budget) const override;
  std::optional<PlanPoint> without_recompute(Bytes budget) override {
    const bool fits =
        by_budget_ && fits_without_recompute(budget) && without_recompute().arena <= budget;
    return fits ? std::optional(without_recompute()) : std::nullopt;
  }
  std::optional<PlanPoint> fastest_within(Bytes budget) override;
  PlanPoint smallest() override;
  void raise_floor(Bytes least) override { floor_ = std::max(floor_, least); }

  // The plan without recomputation, laid out, with room for records of every length.
  const PlanPoint& without_recompute();
  // The schedule of its plan with that arena. None: the recipe's policy makes it.
  std::optional<Schedule> schedule_for(const PlanPoint& plan);
  Plan plan_for(const PlanPoint& plan);
  // The smallest plan, laid out, whatever raise_floor() said.
  Plan smallest_plan();

 private:
  bool fits_without_recompute(Bytes budget) const {
    return budget >= std::max(bounds().without_recompute.live_peak, floor_);
  }
  // The same for the largest shape alone, without room for other lengths: in that arena, records of
  // other lengths may need recomputation.
  const PlanPoint& first_without_recompute();
  void find_facts();
  double find_last_saves();
  // The time of a plan in that arena, with a smaller last micro-batch as it will be planned there.
  double with_last(double seconds, const Schedule& schedule, Bytes arena);
  void find_least();
  PlanPoint planned_by_policy(const Plan& plan) const;
  PlanPoint planned_by_budget(const SchedulePool::Pick& pick);
  OptimalPlanner& planner();

  Candidate candidate_;
  Machine& machine_;
  SearchLimits limits_;
  const bool one_shape_;
  std::unique_ptr<Step> step_;  // null: released, or moved out
  const bool by_budget_;
  OptionFacts own_facts_;
  OptionFacts& facts_;
  std::unique_ptr<OptimalPlanner> planner_;
  // A smaller last micro-batch, built on demand.
  struct Last;
  std::unique_ptr<Last> last_;
  Bytes floor_;
};

}  // namespace thimble
