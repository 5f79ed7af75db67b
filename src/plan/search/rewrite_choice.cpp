#include "plan/search/rewrite_choice.h"

#include <algorithm>

#include "plan/schedule/recompute.h"

namespace thimble {

RewriteChoice::RewriteChoice(const std::vector<Rewrite>& rewrites) {
  for (const Rewrite& rewrite : rewrites) {
    PlanRequest request = rewrite.request;
    request.budget = {};
    const size_t index = options_.size();
    options_.push_back({request, rewrite.harm, {}, nullptr});
    if (!is_optimal()) continue;
    const Plan once = lay_out(request, schedule_once(request));
    options_.back().fastest = {index, once.predicted_seconds, once.arena};
  }
}

OptimalPlanner& RewriteChoice::planner_of(Option& option) {
  if (!option.planner) option.planner = std::make_unique<OptimalPlanner>(option.request);
  return *option.planner;
}

// Within the budget, or else the smallest there is.
RewriteChoice::Pick RewriteChoice::pick_of(size_t index, Bytes budget) {
  Option& option = options_[index];
  if (!is_optimal()) {
    PlanRequest request = option.request;
    request.budget = budget;
    const PlanResult result = make_plan(request);
    if (const auto* plan = std::get_if<Plan>(&result)) {
      return {index, plan->predicted_seconds, plan->arena};
    }
    return {index, 0, std::get<Infeasible>(result).min_bytes};
  }
  if (option.fastest.arena <= budget) return option.fastest;
  const SchedulePool::Pick pick = planner_of(option).choose(budget);
  return {index, pick.seconds, pick.arena};
}

std::optional<RewriteChoice::Pick> RewriteChoice::within(size_t index, Bytes budget) {
  const Pick pick = pick_of(index, budget);
  return pick.arena <= budget ? std::optional(pick) : std::nullopt;
}

bool RewriteChoice::is_set_aside(size_t index, const Pick& pick) {
  size_t gentler = index;  // options of less harm
  while (gentler > 0 && options_[gentler - 1].harm >= options_[index].harm) --gentler;
  const auto other = best_of_first(gentler, pick.arena);
  return other && other->seconds <= kWorthWaiting * pick.seconds;
}

// Of what the first `count` rewrites have left when some plans are set aside.
std::optional<RewriteChoice::Pick> RewriteChoice::best_of_first(size_t count, Bytes budget) {
  if (count == 0) return std::nullopt;
  const auto key = std::pair(count, budget.count);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  std::optional<Pick> best = best_of_first(count - 1, budget);
  const size_t index = count - 1;
  const auto hopeless = [&](double seconds) { return best && seconds >= best->seconds; };
  if (!is_optimal() || !hopeless(options_[index].fastest.seconds)) {
    auto pick = within(index, budget);
    while (pick && !hopeless(pick->seconds) && is_set_aside(index, *pick)) {
      pick = within(index, pick->arena - Bytes(1));
    }
    if (pick && !hopeless(pick->seconds)) best = pick;
  }
  known_[key] = best;
  return best;
}

RewriteChoice::Pick RewriteChoice::choose(std::optional<Bytes> given) {
  const Bytes budget = given.value_or(Bytes(INT64_MAX));
  if (const auto best = best_of_first(options_.size(), budget)) return *best;
  Bytes least = pick_of(0, kLeastMemory).arena;
  for (size_t i = 1; i < options_.size(); ++i) {
    least = std::min(least, pick_of(i, kLeastMemory).arena);
  }
  return *best_of_first(options_.size(), least);
}

PlanResult RewriteChoice::plan(const Pick& pick, std::optional<Bytes> budget) {
  Option& option = options_[pick.rewrite];
  if (budget == kLeastMemory) budget = pick.arena;
  if (!is_optimal()) {
    PlanRequest request = option.request;
    request.budget = budget ? std::optional(std::min(*budget, pick.arena)) : std::nullopt;
    return make_plan(request);
  }
  const bool once = pick.arena == option.fastest.arena && pick.seconds == option.fastest.seconds;
  const Schedule schedule =
      once ? schedule_once(option.request) : *planner_of(option).choose(pick.arena).schedule;
  Plan plan = lay_out(option.request, schedule);
  if (budget && plan.arena > *budget) return infeasible(option.request, plan);
  return plan;
}

}  // namespace thimble
