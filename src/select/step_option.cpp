#include "select/step_option.h"

#include <algorithm>
#include <utility>

#include "plan/policy.h"
#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

// The arena for records of all lengths without recomputation. 0 where the step's own shape is known to take
// most. Of batches by tokens any may.
Bytes arena_of_lengths(Recipe recipe, Machine& machine) {
  if (recipe.tokens == 0 || token_batches(recipe).size() == 1) return {};
  recipe.planner = keep_all_policy();
  recipe.memory.reset();
  recipe.allow = NumericsTier::approximate;  // whose choice it is, is not asked here
  const auto all = plan_training(recipe, machine.shared_from_this(), [&](const StepShape& shape) {
    return Selection{build_step(recipe, shape, machine)};
  });
  return std::get<PlannedTraining>(all).plan().arena;
}

// Of no rows: it is as large as the others.
StepShape last_shape(const Recipe& recipe) {
  StepShape shape = largest_shape(recipe);
  shape.rows = microbatches_of(recipe, shape.length).rest;
  return shape;
}

PlanRequest once_a_step(PlanRequest request) {
  request.microbatches = 1;
  return request;
}

}  // namespace

StepOption::StepOption(Candidate candidate, Machine& machine)
    : StepOption(candidate,
                 build_step(candidate.recipe, largest_shape(candidate.recipe), machine)) {}

StepOption::StepOption(Candidate candidate, Step step, bool one_shape)
    : candidate_(std::move(candidate)),
      machine_(*step.machine),
      shape_(step.shape),
      one_shape_(one_shape),
      step_(std::make_unique<Step>(std::move(step))),
      nodes_(step_->model.graph.nodes.size()),
      by_budget_(choose_policy(step_->recipe.planner).policy->traits.by_budget),
      last_saves_(find_last_saves()),
      bounds_(bounds_of(*step_, last_saves_)) {
  if (!by_budget_) let_recompute();  // a policy by name does as it does
}

struct StepOption::Last {
  Step step;
  PlanRequest request = once_a_step(step.request());
  ScheduleCost without_recompute = cost_of(request, schedule_without_recompute(request));
  std::unique_ptr<OptimalPlanner> planner = nullptr;

  double seconds_within(Bytes arena) {
    if (without_recompute.live_peak <= arena) return without_recompute.seconds;
    if (!planner) planner = std::make_unique<OptimalPlanner>(request);
    return planner->choose(arena).seconds;
  }
};

StepOption::~StepOption() = default;

const Step& StepOption::step() {
  if (!step_) {
    step_ = std::make_unique<Step>(build_step(candidate_.recipe, shape_, machine_));
  }
  return *step_;
}

void StepOption::release_graph() {
  if (!planner_) step_.reset();
}

Step StepOption::take() {
  step();
  if (planner_) return *step_;
  return std::move(*std::exchange(step_, nullptr));
}

double StepOption::find_last_saves() {
  const Recipe& recipe = candidate_.recipe;
  const StepShape shape = last_shape(recipe);
  if (one_shape_ || shape.rows == 0) return 0;
  return each_seconds(*step_) - each_seconds(build_step(recipe, shape, machine_));
}

double StepOption::with_last(double seconds, const Schedule& schedule, Bytes arena) {
  if (last_saves_ == 0) return seconds;
  const Recipe& recipe = candidate_.recipe;
  if (!last_) last_.reset(new Last{build_step(recipe, last_shape(recipe), machine_)});
  return seconds - predicted_seconds(once_a_step(step().request()), schedule) +
         last_->seconds_within(arena);
}

const PlanPoint& StepOption::first_without_recompute() {
  if (!first_without_recompute_) {
    const bool was_there = step_ != nullptr;
    const PlanRequest request = step().request();
    const Plan plan = lay_out(request, schedule_without_recompute(request));
    first_without_recompute_ = {plan.predicted_seconds - last_saves_, plan.arena};
    if (!was_there) release_graph();
  }
  return *first_without_recompute_;
}

const PlanPoint& StepOption::without_recompute() {
  if (!without_recompute_) {
    const Bytes all = one_shape_ ? Bytes() : arena_of_lengths(candidate_.recipe, machine_);
    without_recompute_ = {first_without_recompute().seconds,
                          std::max(first_without_recompute().arena, all)};
  }
  return *without_recompute_;
}

double StepOption::least_seconds(Bytes budget) const {
  if (fits_without_recompute(budget)) return bounds_.without_recompute.seconds;
  if (budget < least_arena() || !candidate_.recomputes) return kNever;
  return bounds_.least_seconds(budget);
}

OptimalPlanner& StepOption::planner() {
  if (!planner_) planner_ = std::make_unique<OptimalPlanner>(step().request());
  return *planner_;
}

PlanPoint StepOption::planned_by_policy(const Plan& plan) const {
  return {plan.predicted_seconds - last_saves_, plan.arena};
}

PlanPoint StepOption::planned_by_budget(const SchedulePool::Pick& pick) {
  return {with_last(pick.seconds, *pick.schedule, pick.arena), pick.arena};
}

std::optional<PlanPoint> StepOption::fastest_within(Bytes budget) {
  if (const auto kept = without_recompute(budget)) return kept;
  if (by_budget_ && fits_without_recompute(budget) && budget >= first_without_recompute().arena) {
    return PlanPoint{first_without_recompute().seconds,
                     std::max(first_without_recompute().arena, floor_)};
  }
  if (budget < least_arena() || (smallest_ && budget < smallest_->arena)) return std::nullopt;
  if (!candidate_.recomputes) return std::nullopt;
  if (!by_budget_) {
    const PlanResult result = make_plan(step().request(budget));
    const auto* const plan = std::get_if<Plan>(&result);
    return plan != nullptr ? std::optional(planned_by_policy(*plan)) : std::nullopt;
  }
  const PlanPoint found = planned_by_budget(planner().choose(budget));
  if (found.arena <= budget) return found;
  smallest_ = found;
  return std::nullopt;
}

PlanPoint StepOption::smallest() {
  if (!smallest_) smallest_ = find_smallest();
  if (smallest_->arena >= floor_) return *smallest_;
  return {fastest_within(floor_)->seconds, floor_};
}

PlanPoint StepOption::find_smallest() {
  if (!candidate_.recomputes) return first_without_recompute();
  if (by_budget_) return planned_by_budget(planner().choose(kLeastMemory));
  return planned_by_policy(std::get<Plan>(make_plan(step().request(kLeastMemory))));
}

std::optional<Schedule> StepOption::schedule_for(const PlanPoint& plan) {
  if (!by_budget_) return std::nullopt;
  if (plan.arena >= bounds_.without_recompute.live_peak &&
      plan.arena >= first_without_recompute().arena) {
    return schedule_without_recompute(step().request());
  }
  return *planner().choose(plan.arena).schedule;
}

Plan StepOption::plan_for(const PlanPoint& plan) {
  const std::optional<Schedule> schedule = schedule_for(plan);
  if (schedule) return lay_out(step().request(), *schedule);
  return std::get<Plan>(make_plan(step().request(plan.arena)));
}

}  // namespace thimble
