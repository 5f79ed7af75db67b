#include "plan/search/optimal_planner.h"

#include <algorithm>
#include <cmath>

#include "plan/policy.h"
#include "plan/schedule/recursive_segments.h"
#include "plan/search/eviction_search.h"
#include "plan/search/never_worth_recomputing.h"
#include "plan/search/reduce_peak.h"

namespace thimble {
namespace {

PlanRequest without_budget(PlanRequest request) {
  request.budget = {};
  return request;
}

// Time by work alone, FLOPs and bytes made: the same on every machine.
Costs plain_costs(const PlanRequest& request, double seconds_per_flop) {
  constexpr double kSecondsPerByte = 5e-10;
  Costs costs = request.costs;
  for (size_t n = 0; n < costs.nodes.size(); ++n) {
    double seconds = seconds_per_flop * costs.nodes[n].flops;
    for (const ValueId output : request.graph.nodes[n].outputs) {
      seconds += kSecondsPerByte * static_cast<double>(request.graph[output].type.bytes().count);
    }
    costs.nodes[n].seconds = seconds;
  }
  return costs;
}

// Whether a chain of blocks is a poor picture of the net: one block is much of it.
bool is_lumpy(const std::vector<Block>& blocks) {
  int64_t largest = 0;
  int64_t total = 0;
  for (const Block& block : blocks) {
    largest = std::max(largest, block.made.count);
    total += block.made.count;
  }
  return largest * 4 > total;
}

}  // namespace

OptimalPlanner::OptimalPlanner(const PlanRequest& request)
    : request_(without_budget(request)),
      pass_(request.graph),
      blocks_(cut_into_blocks(pass_, request.costs)),
      chain_(pass_, request.costs, blocks_),
      never_recomputed_(values_never_worth_recomputing(pass_, request.costs)),
      pool_(request_, SchedulePool::Slack::used) {
  const std::vector<bool> all(request_.graph.values.size(), true);
  const ScheduleCost everything = pool_.cost(pool_.add(schedule_keeping(pass_, all)));
  add_policies();
  add_anchors();
  add_recursive_segments();
  add_evictions(everything.live_peak);
  pool_.settle();
  constexpr size_t kStarts = 8;
  for (const Schedule* lean : pool_.leanest(kStarts)) leanest_.push_back(*lean);
}

SchedulePool::Pick OptimalPlanner::choose(std::optional<Bytes> given) {
  const Bytes budget = given.value_or(Bytes(INT64_MAX));
  auto best = pool_.fastest_within(budget);
  if (best && best->seconds <= pool_.least_seconds()) return *best;
  for (size_t a = 0; a + 1 < anchors_.size(); ++a) {
    if (anchors_[a + 1].cost.live_peak >= budget) continue;
    if (best && pool_.fuller_seconds(anchors_[a].index) >= best->seconds) continue;
    look_between(a);
    best = pool_.fastest_within(budget);
  }
  if (best) return *best;
  for (size_t a = 0; a + 1 < anchors_.size(); ++a) {
    if (anchors_[a + 1].cost.live_peak < pool_.smallest().arena) look_between(a);
  }
  reduce_peak();
  if (reduced_->empty()) return pool_.smallest();
  if (const auto leaner = reduced_->fastest_within(budget)) return *leaner;
  const SchedulePool::Pick smallest = reduced_->smallest();
  return smallest.arena < pool_.smallest().arena ? smallest : pool_.smallest();
}

// Only what is smaller than all else by something that is worth the time; slower than the fastest of
// that size, and so with its spare room used, for a smaller budget may not give a faster plan.
void OptimalPlanner::reduce_peak() {
  if (reduced_) return;
  reduced_.emplace(request_, SchedulePool::Slack::used);
  const SchedulePool::Pick smallest = pool_.smallest();
  const double seconds = choose(smallest.arena).seconds;
  constexpr double kSlowest = 1.5;
  const Bytes most(smallest.arena.count - smallest.arena.count / 200);
  // A try takes time that grows with the graph, and a large one wants more than it could have.
  constexpr int64_t kMost = 1500, kWork = 200'000'000;
  const auto nodes = static_cast<int64_t>(request_.graph.nodes.size());
  int tries = static_cast<int>(std::min(kMost, kWork / (nodes * nodes)));
  for (const Schedule& start : leanest_) {
    if (tries <= 0) break;
    for (ReducedPeak& found : reduced_peaks(pass_, request_, start, tries)) {
      const bool worth = found.cost.live_peak <= most && found.cost.seconds <= kSlowest * seconds;
      if (!worth || found.cost.seconds <= seconds) continue;
      reduced_->add(std::move(found.schedule), found.cost, seconds);
    }
  }
}

// How many schedules of this graph are worth looking at, if `most` are for a small one.
size_t OptimalPlanner::affordable(size_t least, size_t most) const {
  constexpr size_t kNodes = 12'000;  // so many nodes in all, for each of `most`
  return std::clamp(kNodes * most / request_.graph.nodes.size(), least, most);
}

void OptimalPlanner::add(Schedule schedule) {
  if (repeats_any_of(pass_, never_recomputed_, schedule)) {
    pool_.add(keeping_all_of(pass_, never_recomputed_, schedule));
  }
  pool_.add(std::move(schedule));
}

void OptimalPlanner::add_policies() {
  for (const Policy* policy : all_policies()) {
    if (policy->traits.by_budget || policy->sharing != Sharing::sharing) continue;
    PlanRequest request = request_;
    request.number = policy->number.usual;
    if (policy->candidates != nullptr) {
      for (Schedule& schedule : policy->candidates(request)) add(std::move(schedule));
    } else {
      add(policy->schedule(request));
    }
  }
}

// Points of the chain frontier, evenly spaced in the logarithm of memory.
void OptimalPlanner::add_anchors() {
  if (chain_.size() == 0) return;
  const size_t count = affordable(7, 32);
  const auto log_peak = [&](size_t point) {
    return std::log(static_cast<double>(chain_.peak(point).count) + 1);
  };
  const double most = log_peak(0);
  const double least = log_peak(chain_.size() - 1);
  for (size_t i = 0; i < chain_.size(); ++i) {
    const double part = static_cast<double>(anchors_.size()) / static_cast<double>(count - 1);
    const bool last = i + 1 == chain_.size();
    if (!last && log_peak(i) > most - (most - least) * part) continue;
    const size_t index = pool_.add(chain_.schedule(i));
    anchors_.push_back({i, index, pool_.cost(index)});
  }
}

void OptimalPlanner::look_between(size_t anchor) {
  Anchor& more = anchors_[anchor];
  const Anchor& less = anchors_[anchor + 1];
  if (more.looked_behind) return;
  more.looked_behind = true;
  const double fastest = pool_.fuller_seconds(more.index);
  const size_t count = std::min(affordable(4, 16), less.point - more.point - 1);
  for (size_t i = 1; i <= count; ++i) {
    const size_t point = more.point + (less.point - more.point) * i / (count + 1);
    Schedule schedule = chain_.schedule(point);
    const ScheduleCost cost = cost_of(request_, schedule);
    const bool between = cost.live_peak > less.cost.live_peak &&
                         cost.live_peak < more.cost.live_peak && cost.seconds > more.cost.seconds &&
                         cost.seconds < less.cost.seconds;
    if (between) pool_.add(std::move(schedule), cost, fastest);
  }
}

// Segments whose insides are halved recursively, from two segments to many (one is log_recursive).
void OptimalPlanner::add_recursive_segments() {
  const size_t count = affordable(3, 12);
  for (size_t i = 0; i < count; ++i) {
    const double exponent = 1 + 5.0 * static_cast<double>(i) / static_cast<double>(count - 1);
    const auto segments = static_cast<size_t>(std::pow(2.0, exponent) + 0.5);
    if (segments * 2 > blocks_.size()) break;
    RecursiveSegments retention(pass_, blocks_, segments);
    add(schedule_with(pass_, retention));
  }
}

void OptimalPlanner::add_evictions(Bytes everything) {
  constexpr size_t kSmall = 256;  // forward nodes
  if (pass_.size() > kSmall && !is_lumpy(blocks_)) return;
  // How low it gets depends on what it takes for dear: measured times, plain work, and bytes alone
  // lead to different floors.
  for (const Costs& costs :
       {request_.costs, plain_costs(request_, 1e-11), plain_costs(request_, 0)}) {
    for (const EvictionPoint& point : eviction_frontier(pass_, costs, everything)) {
      pool_.add(schedule_dropping(pass_, point.drops));
    }
  }
}

}  // namespace thimble
