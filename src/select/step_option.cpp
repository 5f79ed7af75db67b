#include "select/step_option.h"

#include <algorithm>
#include <utility>

#include "plan/bytes/least_bytes.h"
#include "plan/policy.h"
#include "plan/schedule/recompute.h"
#include "plan/search/floor_search.h"

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

StepOption::StepOption(const Candidate& candidate, Machine& machine)
    : StepOption(candidate,
                 build_step(candidate.recipe, largest_shape(candidate.recipe), machine)) {}

StepOption::StepOption(Candidate candidate, Machine& machine, OptionFacts& facts,
                       const SearchLimits& limits, std::unique_ptr<Step> step)
    : candidate_(std::move(candidate)),
      machine_(machine),
      limits_(limits),
      one_shape_(false),
      step_(std::move(step)),
      by_budget_(choose_policy(candidate_.recipe.planner).policy->traits.by_budget),
      facts_(facts) {
  if (facts_.nodes == 0) find_facts();
  if (!by_budget_) let_recompute();  // a policy by name does as it does
}

StepOption::StepOption(Candidate candidate, Step step, bool one_shape, const SearchLimits& limits)
    : candidate_(std::move(candidate)),
      machine_(*step.machine),
      limits_(limits),
      one_shape_(one_shape),
      step_(std::make_unique<Step>(std::move(step))),
      by_budget_(choose_policy(step_->recipe.planner).policy->traits.by_budget),
      facts_(own_facts_) {
  find_facts();
  if (!by_budget_) let_recompute();
}

void StepOption::find_facts() {
  call_watch(limits_);
  facts_.shape = step_ ? step_->shape : largest_shape(candidate_.recipe);
  const double saves = find_last_saves();
  facts_.bounds = bounds_of(step(), saves);
  facts_.last_saves = saves;
  facts_.nodes = step().model.graph.nodes.size();
}

struct StepOption::Last {
  Step step;
  const SearchLimits& limits;
  PlanRequest request = once_a_step(step.request());
  ScheduleCost without_recompute = cost_of(request, schedule_without_recompute(request));
  std::unique_ptr<OptimalPlanner> planner = nullptr;

  double seconds_within(Bytes arena) {
    if (without_recompute.live_peak <= arena) return without_recompute.seconds;
    if (!planner) planner = std::make_unique<OptimalPlanner>(request, limits);
    return planner->choose(arena).seconds;
  }
};

StepOption::~StepOption() = default;

const Step& StepOption::step() {
  if (!step_) {
    step_ = std::make_unique<Step>(build_step(candidate_.recipe, facts_.shape, machine_));
  }
  return *step_;
}

const std::string& StepOption::needs_most_at() {
  const Graph& graph = step().model.graph;
  return graph[least_bytes(graph, step().costs).at].name;
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
  return microbatch_seconds(step()) - microbatch_seconds(build_step(recipe, shape, machine_));
}

double StepOption::with_last(double seconds, const Schedule& schedule, Bytes arena) {
  if (facts_.last_saves == 0) return seconds;
  const Recipe& recipe = candidate_.recipe;
  if (!last_) last_.reset(new Last{build_step(recipe, last_shape(recipe), machine_), limits_});
  return seconds - predicted_seconds(once_a_step(step().request()), schedule) +
         last_->seconds_within(arena);
}

const PlanPoint& StepOption::first_without_recompute() {
  if (!facts_.first_without_recompute) {
    const bool was_there = step_ != nullptr;
    const PlanRequest request = step().request();
    const Plan plan = lay_out(request, schedule_without_recompute(request));
    facts_.first_without_recompute = {plan.predicted_seconds - facts_.last_saves, plan.arena};
    if (!was_there) release_graph();
  }
  return *facts_.first_without_recompute;
}

const PlanPoint& StepOption::without_recompute() {
  if (!facts_.without_recompute) {
    const Bytes all = one_shape_ ? Bytes() : arena_of_lengths(candidate_.recipe, machine_);
    facts_.without_recompute = {first_without_recompute().seconds,
                                std::max(first_without_recompute().arena, all)};
  }
  return *facts_.without_recompute;
}

double StepOption::least_seconds(Bytes budget) const {
  if (fits_without_recompute(budget)) return bounds().without_recompute.seconds;
  if (budget < least_arena() || !candidate_.recomputes) return kNever;
  return bounds().least_seconds(budget);
}

OptimalPlanner& StepOption::planner() {
  if (!planner_) planner_ = std::make_unique<OptimalPlanner>(step().request(), limits_);
  return *planner_;
}

PlanPoint StepOption::planned_by_policy(const Plan& plan) const {
  return {plan.predicted_seconds - facts_.last_saves, plan.arena};
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
  if (budget < least_arena() || !candidate_.recomputes) return std::nullopt;
  if (facts_.least && budget < facts_.least->arena) return std::nullopt;
  if (!by_budget_) {
    const PlanResult result = make_plan(step().request(budget));
    const auto* const plan = std::get_if<Plan>(&result);
    return plan != nullptr ? std::optional(planned_by_policy(*plan)) : std::nullopt;
  }
  const SchedulePool::Pick pick = planner().choose(budget);
  const PlanPoint found = planned_by_budget(pick);
  if (found.arena <= budget) return found;
  facts_.least = found;
  facts_.least_schedule = *pick.schedule;
  return std::nullopt;
}

PlanPoint StepOption::smallest() {
  if (!candidate_.recomputes) {
    return {first_without_recompute().seconds, std::max(first_without_recompute().arena, floor_)};
  }
  find_least();
  if (facts_.least->arena >= floor_) return *facts_.least;
  return {fastest_within(floor_)->seconds, floor_};
}

void StepOption::find_least() {
  if (facts_.least) return;
  const bool was_there = step_ != nullptr;
  if (by_budget_) {
    SmallPlan plan = std::move(smallest_plans(step().request(), limits_).back());
    const double seconds = predicted_seconds(step().request(), plan.schedule);
    facts_.least = PlanPoint{with_last(seconds, plan.schedule, plan.arena), plan.arena};
    facts_.least_schedule = std::move(plan.schedule);
  } else {
    const Plan plan = std::get<Plan>(make_plan(step().request(kLeastMemory)));
    facts_.least = planned_by_policy(plan);
    facts_.least_schedule = schedule_of(plan);
  }
  if (!was_there) release_graph();
}

std::optional<Schedule> StepOption::schedule_for(const PlanPoint& plan) {
  if (!by_budget_) return std::nullopt;
  const std::optional<PlanPoint>& least = facts_.least;
  if (least && least->arena == plan.arena && least->seconds == plan.seconds) {
    return facts_.least_schedule;
  }
  if (plan.arena >= bounds().without_recompute.live_peak &&
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

Plan StepOption::smallest_plan() {
  if (!candidate_.recomputes)
    return lay_out(step().request(), schedule_without_recompute(step().request()));
  find_least();
  return lay_out(step().request(), *facts_.least_schedule);
}

}  // namespace thimble
