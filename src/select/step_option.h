// A candidate's step as an option: what it costs when everything is computed once, what no plan of it can be
// below, and, when that is not enough to know, its planner. Its graph is there only while it is asked
// about: many candidates take little memory.
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

// Facts about a step without its graph. Options of the same step, in other tiers, share it.
struct OptionFacts {
  bool refused = false;  // it cannot be built
  StepShape shape = {};
  size_t nodes = 0;       // 0: nothing is known yet
  double last_saves = 0;  // seconds, where the last microbatch is smaller than the others
  Bounds bounds = {};
  std::optional<PlanPoint> first_without_recompute = {}, without_recompute = {},
                           least = {};  // when they were asked for
  std::optional<Schedule> least_schedule = {};
};
using OptionFactsByFlags = std::map<std::string, OptionFacts>;

class StepOption final : public Option {
 public:
  // The whole step of the candidate, by its largest shape: records of every length, and a smaller last
  // microbatch. UserError where the step cannot be built.
  StepOption(Candidate candidate, Machine& machine);
  // `facts`: those of the step, or what is to be filled in; they outlive the option.
  StepOption(Candidate candidate, Machine& machine, OptionFacts& facts, const SearchLimits& limits);
  // The same of a step that was built; `one_shape`: of that shape alone.
  StepOption(Candidate candidate, Step step, bool one_shape = false,
             const SearchLimits& limits = {});
  ~StepOption() override;
  StepOption(const StepOption&) = delete;  // its parts refer to each other
  StepOption& operator=(const StepOption&) = delete;

  const Candidate& candidate() const { return candidate_; }
  const Bounds& bounds() const { return facts_.bounds; }
  size_t nodes() const { return facts_.nodes; }
  // Whether it may be planned in any way; else by the policy that was typed.
  bool by_budget() const { return by_budget_; }
  bool was_planned() const { return planner_ != nullptr; }
  void let_recompute() { candidate_.recomputes = true; }

  // Built again where it was released.
  const Step& step();
  void release_graph();
  // Gives the step away, or a copy of one that its planner refers to.
  Step take();

  NumericsTier tier() const override { return candidate_.tier; }
  double risk() const override { return candidate_.risk; }
  Bytes least_arena() const override {
    return std::max(floor_,
                    candidate_.recomputes ? bounds().least : bounds().without_recompute.live_peak);
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

  // Everything computed once, laid out, with room for records of every length, all computed so.
  const PlanPoint& without_recompute();
  // How its plan in that arena goes; none: as its policy plans it.
  std::optional<Schedule> schedule_for(const PlanPoint& plan);
  Plan plan_for(const PlanPoint& plan);
  // Laid out: what smallest() is, but for its floor.
  Plan smallest_plan();

 private:
  bool fits_without_recompute(Bytes budget) const {
    return budget >= std::max(bounds().without_recompute.live_peak, floor_);
  }
  // Of the records that the step is planned for first: in as little, those of other lengths may have to
  // compute things again.
  const PlanPoint& first_without_recompute();
  void find_facts();
  double find_last_saves();
  // Of a plan in that arena, with the last microbatch as it will be planned there.
  double with_last(double seconds, const Schedule& schedule, Bytes arena);
  void find_least();
  PlanPoint planned_by_policy(const Plan& plan) const;
  PlanPoint planned_by_budget(const SchedulePool::Pick& pick);
  OptimalPlanner& planner();

  Candidate candidate_;
  Machine& machine_;
  const SearchLimits limits_;
  const bool one_shape_;
  std::unique_ptr<Step> step_;  // null: released, or given away
  const bool by_budget_;
  OptionFacts own_facts_;
  OptionFacts& facts_;
  std::unique_ptr<OptimalPlanner> planner_;
  // The last microbatch, smaller than the others: made when it is asked for.
  struct Last;
  std::unique_ptr<Last> last_;
  Bytes floor_;
};

}  // namespace thimble
