// The `optimal` policy: the fastest schedule found for any budget. Its candidates do not depend on
// the budget, so a smaller budget never gives a faster plan or a larger arena. They are:
//   - the schedules of every other policy, also with values kept that are never worth recomputing,
//   - segments whose insides are halved, for the least memory,
//   - the frontier of the chain search: segments, and the values kept inside each block,
//   - the frontier of the eviction search, for small graphs of any shape.
// Each counts as it is and with its slack filled (plan/search/fill_slack.h). Budgets below the
// smallest schedule that is independent of times get a plan of the floor search
// (plan/search/floor_search.h), none of them faster. The last of these is the floor: smaller plans
// are ignored. The chain frontier is read in two rounds: first some points (anchors), then more
// points between two anchors. INVARIANT: points between two anchors have costs between theirs, and
// their filled schedules are slower than the faster anchor's (points that are not so are ignored).
// So a budget that rules out both anchors rules out every point between, and we skip them.
#pragma once

#include <optional>
#include <vector>

#include "plan/search/chain_plans.h"
#include "plan/search/schedule_pool.h"

namespace thimble {

class OptimalPlanner {
 public:
  // Ignores the request's budget. REQUIRES: the graph and costs of the request outlive the planner.
  explicit OptimalPlanner(const PlanRequest& request, const SearchLimits& limits = {});
  OptimalPlanner(const OptimalPlanner&) = delete;  // its parts refer to each other
  OptimalPlanner& operator=(const OptimalPlanner&) = delete;

  // The fastest plan within the budget, or the smallest if none is. Valid until the next call.
  SchedulePool::Pick choose(std::optional<Bytes> budget);

 private:
  // A point of the chain frontier that is in the pool.
  struct Anchor {
    size_t point = 0;
    size_t index = 0;  // in the pool
    ScheduleCost cost;
    bool looked_between = false;  // points between this one and the next are in the pool, too
  };
  struct Small {
    Schedule schedule;
    double seconds = 0;  // no less than those of larger ones
    Bytes arena;
  };

  // Adds the schedules that depend on times, once a budget needs them.
  void add_the_rest();
  void add_anchors();
  void add_evictions();
  void look_between(size_t anchor);
  // The fastest of the pool; arenas below `least` do not count.
  std::optional<SchedulePool::Pick> fastest_within(Bytes budget, Bytes least);
  const std::vector<Small>& small();
  SchedulePool::Pick pick(const Small& small) const {
    return {&small.schedule, small.seconds, small.arena};
  }

  const PlanRequest request_;
  const SearchLimits limits_;
  const ForwardPass pass_;
  const std::vector<Block> blocks_;
  const std::vector<bool> never_recomputed_;  // by value
  SchedulePool pool_;
  ScheduleCost everything_;  // the cost with everything kept
  Bytes least_;              // no plan is smaller
  Bytes leanest_;            // the smallest arena of schedules that depend on no times
  bool complete_ = false;    // the pool has the schedules that depend on times, too
  std::optional<ChainPlans> chain_;
  std::vector<Anchor> anchors_;
  std::vector<Small> small_;  // plans of the floor search, once a budget needs them
};

}  // namespace thimble
