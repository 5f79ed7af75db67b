#include "plan/search/floor_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/search/chain_plans.h"
#include "plan/search/eviction_search.h"
#include "plan/search/named_schedules.h"
#include "plan/search/reduce_peak.h"
#include "plan/search/schedule_pool.h"

namespace thimble {
namespace {

class FloorSearch {
 public:
  FloorSearch(const PlanRequest& request, const SearchLimits& limits)
      : limits_(limits),
        costs_(costs_by_work(request, limits_.work_per_flop, limits_)),
        request_(by_work(request)),
        pass_(request.graph),
        blocks_(cut_into_blocks(pass_, costs_)),
        pool_(request_, SchedulePool::Slack::left, limits_) {}

  std::vector<SmallPlan> run() {
    pool_.add(schedule_without_recompute(request_));
    for (Schedule& schedule : schedules_of_policies(request_)) pool_.add(std::move(schedule));
    add_segments();
    SearchLimits own = limits_;
    own.pool_nodes = limits_.floor_nodes;
    for (Schedule& schedule : halvings(pass_, blocks_, own)) {
      pool_.add(std::move(schedule));
    }
    const std::vector<size_t> named = pool_.leanest(std::max<size_t>(1, limits_.peak_starts / 2));
    add_evictions();
    const SchedulePool::Pick smallest = pool_.smallest();
    std::vector<SmallPlan> plans = {{*smallest.schedule, smallest.arena}};
    if (limits_.reduce_peak) reduce(named, plans);
    return plans;
  }

 private:
  PlanRequest by_work(const PlanRequest& request) const {
    PlanRequest other = {.graph = request.graph, .costs = costs_};
    other.sharing = request.sharing;
    other.microbatches = request.microbatches;
    other.fixed = request.fixed;
    other.reserved = request.reserved;
    return other;
  }

  // The leanest points of the chain search, where it has few rooms to try.
  void add_segments() {
    SearchLimits few = limits_;
    few.chain_rooms_tried = std::min(few.chain_rooms_tried, few.floor_rooms);
    const ChainPlans chain(pass_, costs_, blocks_, few);
    for (size_t i = chain.size() - std::min(chain.size(), limits_.floor_points); i < chain.size();
         ++i) {
      pool_.add(chain.schedule(i));
    }
  }

  // The least budgets with an answer, under two cost models. The second search begins below what the
  // first one found.
  void add_evictions() {
    if (!worth_evicting(pass_, blocks_, limits_)) return;
    const auto add = [&](const Costs& costs) {
      const Bytes below = pool_.cost(pool_.leanest(1).front()).live_peak;
      for (const EvictionPoint& point : leanest_evictions(pass_, costs, below, limits_)) {
        pool_.add(schedule_dropping(pass_, point.drops));
      }
    };
    if (limits_.evictions_by_bytes) add(costs_by_work(request_, 0, limits_));
    if (limits_.evictions_by_work) add(costs_);
  }

  // From what was searched for and from `named`, which is of another kind: a search may end where another goes on.
  void reduce(std::vector<size_t> starts, std::vector<SmallPlan>& plans) {
    const SchedulePool::Pick smallest = pool_.smallest();
    const double slowest = limits_.peak_slowest * pool_.fastest_within(smallest.arena)->seconds;
    const auto nodes = static_cast<int64_t>(request_.graph.nodes.size());
    // A try takes time that grows with the graph, and a large one wants more than it could have.
    int tries = static_cast<int>(std::min(limits_.peak_tries, limits_.peak_work / (nodes * nodes)));
    for (const size_t place : pool_.leanest(limits_.peak_starts)) {
      if (std::ranges::find(starts, place) == starts.end()) starts.push_back(place);
    }
    std::vector<ReducedPeak> reduced;
    for (size_t i = 0; i < starts.size() && tries > 0; ++i) {
      int share = tries / static_cast<int>(starts.size() - i);
      tries -= share;
      for (ReducedPeak& found :
           reduced_peaks(pass_, request_, pool_.schedule(starts[i]), share, limits_)) {
        const bool worth = found.cost.live_peak < smallest.arena && found.cost.seconds <= slowest;
        if (worth) reduced.push_back(std::move(found));
      }
      tries += share;
    }
    // The leanest, and, a step apart, what is faster: each has to be laid out.
    std::ranges::stable_sort(reduced, {}, [](const ReducedPeak& found) {
      return std::pair(found.cost.live_peak, found.cost.seconds);
    });
    SchedulePool pool(request_, SchedulePool::Slack::left, limits_);
    const ScheduleCost* last = nullptr;
    for (const ReducedPeak& found : reduced) {
      const bool near = last != nullptr && found.cost.live_peak - last->live_peak <
                                               Bytes(last->live_peak.count / limits_.peak_part);
      if (near || (last != nullptr && found.cost.seconds >= last->seconds)) continue;
      pool.add(found.schedule, found.cost);
      last = &found.cost;
    }
    // Only what is smaller by something that is worth it.
    const auto within = [&](Bytes than) {
      return pool.fastest_within(Bytes(than.count - than.count / limits_.peak_worth));
    };
    while (const auto next = within(plans.back().arena)) {
      plans.push_back({*next->schedule, next->arena});
    }
  }

  const SearchLimits& limits_;
  const Costs costs_;
  const PlanRequest request_;
  const ForwardPass pass_;
  const std::vector<Block> blocks_;
  SchedulePool pool_;
};

}  // namespace

std::vector<SmallPlan> smallest_plans(const PlanRequest& request, const SearchLimits& limits) {
  return FloorSearch(request, limits).run();
}

Costs costs_by_work(const PlanRequest& request, double seconds_per_flop,
                    const SearchLimits& limits) {
  Costs costs = request.costs;
  for (size_t n = 0; n < costs.nodes.size(); ++n) {
    double seconds = seconds_per_flop * costs.nodes[n].flops;
    for (const ValueId output : request.graph.nodes[n].outputs) {
      seconds +=
          limits.work_per_byte * static_cast<double>(request.graph[output].type.bytes().count);
    }
    costs.nodes[n].seconds = seconds;
  }
  return costs;
}

}  // namespace thimble
