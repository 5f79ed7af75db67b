#include "plan/search/optimal_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/bytes/least_bytes.h"
#include "plan/search/eviction_search.h"
#include "plan/search/floor_search.h"
#include "plan/search/named_schedules.h"
#include "plan/search/never_worth_recomputing.h"

namespace thimble {
namespace {

PlanRequest without_budget(PlanRequest request) {
  request.budget = {};
  return request;
}

}  // namespace

OptimalPlanner::OptimalPlanner(const PlanRequest& request, const SearchLimits& limits)
    : request_(without_budget(request)),
      limits_(limits),
      pass_(request.graph),
      blocks_(cut_into_blocks(pass_, request.costs)),
      never_recomputed_(values_never_worth_recomputing(pass_, request.costs, limits)),
      pool_(request_, SchedulePool::Slack::used, limits),
      least_(least_bytes(request.graph, request.costs).all) {
  const std::vector<bool> all(request_.graph.values.size(), true);
  std::vector<Schedule> schedules = {schedule_keeping(pass_, all)};
  if (limits_.policies) {
    std::ranges::move(schedules_of_policies(request_), std::back_inserter(schedules));
  }
  if (limits_.halvings) {
    std::ranges::move(halvings(pass_, blocks_, limits_), std::back_inserter(schedules));
  }
  for (const Schedule& schedule : schedules) pool_.add(schedule);
  everything_ = pool_.cost(0);
  leanest_ = pool_.arena(pool_.leanest(1).front());
  if (!limits_.always_kept) return;
  for (const Schedule& schedule : schedules) {
    if (!repeats_any_of(pass_, never_recomputed_, schedule)) continue;
    pool_.add(keeping_all_of(pass_, never_recomputed_, schedule));
  }
}

SchedulePool::Pick OptimalPlanner::choose(std::optional<Bytes> given) {
  const Bytes budget = given.value_or(Bytes(INT64_MAX));
  if (budget < least_ || (budget < leanest_ && budget < small().back().arena)) {
    return pick(small().back());
  }
  add_the_rest();
  auto best = fastest_within(budget, {});
  if (best && best->arena >= leanest_) return *best;
  // This low, the floor has to be known.
  if (best && best->arena < small().back().arena) {
    best = fastest_within(budget, small().back().arena);
  }
  if (budget >= leanest_) return *best;
  // A smaller budget may not give a faster plan.
  const double fastest = fastest_within(leanest_, small().back().arena)->seconds;
  const auto fits = [&](const Small& plan) { return plan.arena <= budget; };
  SchedulePool::Pick other =
      pick(*std::ranges::find_if(small(), fits));  // those behind are no faster
  other.seconds = std::max(other.seconds, fastest);
  return best && best->seconds <= other.seconds ? *best : other;
}

std::optional<SchedulePool::Pick> OptimalPlanner::fastest_within(Bytes budget, Bytes least) {
  auto best = pool_.fastest_within(budget, least);
  if (best && best->seconds <= pool_.least_seconds()) return best;
  for (size_t a = 0; a + 1 < anchors_.size(); ++a) {
    if (anchors_[a + 1].cost.live_peak >= budget) continue;
    if (best && pool_.fuller_seconds(anchors_[a].index) >= best->seconds) continue;
    look_between(a);
    best = pool_.fastest_within(budget, least);
  }
  return best;
}

const std::vector<OptimalPlanner::Small>& OptimalPlanner::small() {
  if (!small_.empty()) return small_;
  for (SmallPlan& plan : smallest_plans(request_, limits_)) {
    double seconds = predicted_seconds(request_, plan.schedule);
    if (!small_.empty()) seconds = std::max(seconds, small_.back().seconds);
    small_.push_back({std::move(plan.schedule), seconds, plan.arena});
  }
  return small_;
}

void OptimalPlanner::add_the_rest() {
  if (std::exchange(complete_, true)) return;
  if (limits_.chain) {
    chain_.emplace(pass_, request_.costs, blocks_, limits_);
    add_anchors();
  }
  if (limits_.evictions && worth_evicting(pass_, blocks_, limits_)) {
    add_evictions();
  }
  pool_.settle();
}

// Points of the chain frontier, evenly spaced in the logarithm of memory.
void OptimalPlanner::add_anchors() {
  if (chain_->size() == 0) return;
  const size_t count =
      affordable(request_.graph.nodes.size(), limits_.least_anchors, limits_.anchors, limits_);
  const auto log_peak = [&](size_t point) {
    return std::log(static_cast<double>(chain_->peak(point).count) + 1);
  };
  const double most = log_peak(0);
  const double least = log_peak(chain_->size() - 1);
  for (size_t i = 0; i < chain_->size(); ++i) {
    const double part = static_cast<double>(anchors_.size()) / static_cast<double>(count - 1);
    const bool last = i + 1 == chain_->size();
    if (!last && log_peak(i) > most - (most - least) * part) continue;
    const size_t index = pool_.add(chain_->schedule(i));
    anchors_.push_back({i, index, pool_.cost(index)});
  }
}

void OptimalPlanner::look_between(size_t anchor) {
  Anchor& more = anchors_[anchor];
  const Anchor& less = anchors_[anchor + 1];
  if (more.looked_between || !limits_.between) return;
  more.looked_between = true;
  const double fastest = pool_.fuller_seconds(more.index);
  const size_t count = std::min(
      affordable(request_.graph.nodes.size(), limits_.least_between, limits_.most_between, limits_),
      less.point - more.point - 1);
  for (size_t i = 1; i <= count; ++i) {
    const size_t point = more.point + (less.point - more.point) * i / (count + 1);
    Schedule schedule = chain_->schedule(point);
    const ScheduleCost cost = cost_of(request_, schedule);
    const bool between = cost.live_peak > less.cost.live_peak &&
                         cost.live_peak < more.cost.live_peak && cost.seconds > more.cost.seconds &&
                         cost.seconds < less.cost.seconds;
    if (between) pool_.add(std::move(schedule), cost, fastest);
  }
}

void OptimalPlanner::add_evictions() {
  const auto add = [&](const Costs& costs) {
    for (const EvictionPoint& point :
         eviction_frontier(pass_, costs, everything_.live_peak, limits_)) {
      pool_.add(schedule_dropping(pass_, point.drops));
    }
  };
  // Measured times, plain work and bytes alone lead to different frontiers.
  add(request_.costs);
  if (limits_.evictions_by_work) add(costs_by_work(request_, limits_.work_per_flop, limits_));
  if (limits_.evictions_by_bytes) add(costs_by_work(request_, 0, limits_));
}

}  // namespace thimble
