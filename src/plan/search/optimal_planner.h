// The fastest schedule found for any budget. All schedules it chooses from are the same whatever the
// budget is, so that a smaller budget never gives a faster plan or a larger arena:
//   - those of every other policy, as they are and with what is never worth computing again kept;
//   - segments whose insides are halved, for the least memory;
//   - the frontier of the chain search: segments, and what stays inside each block;
//   - for graphs small enough, of any shape, the frontier of the eviction search.
// Each of them counts as it is and with its spare room used. Below the smallest that depends on no times
// come the plans of the floor search (plan/search/floor_search.h), none of them faster. The last of them
// is the floor: no plan below it counts.
// The chain frontier is looked at in two rounds: first some points of it (anchors), then, between two
// anchors, more of it. A point between two anchors counts only if its cost really lies between theirs,
// and its fuller schedule only if it is slower than the faster anchor's: then nothing is missed by not
// looking between anchors that the budget rules out.
#pragma once

#include <optional>
#include <vector>

#include "plan/search/chain_plans.h"
#include "plan/search/schedule_pool.h"

namespace thimble {

class OptimalPlanner {
 public:
  // The request's budget is not looked at. What the request refers to must outlive the planner.
  explicit OptimalPlanner(const PlanRequest& request, const SearchLimits& limits = {});
  OptimalPlanner(const OptimalPlanner&) = delete;  // its parts refer to each other
  OptimalPlanner& operator=(const OptimalPlanner&) = delete;

  // The fastest within the budget; where nothing is, the smallest. Good until the next call.
  SchedulePool::Pick choose(std::optional<Bytes> budget);

 private:
  // A point of the chain frontier that is in the pool.
  struct Anchor {
    size_t point = 0;
    size_t index = 0;  // in the pool
    ScheduleCost cost;
    bool looked_behind = false;  // the points between this one and the next are in the pool, too
  };
  struct Small {
    Schedule schedule;
    double seconds = 0;  // no less than those of larger ones
    Bytes arena;
  };

  // Whatever depends on times, once a budget needs it.
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
  ScheduleCost everything_;  // kept
  Bytes least_;              // no plan is smaller
  Bytes leanest_;            // arena of the leanest that depends on no times
  bool complete_ = false;    // the pool has whatever depends on times, too
  std::optional<ChainPlans> chain_;
  std::vector<Anchor> anchors_;
  std::vector<Small> small_;  // once a budget needs them; the last is the floor
};

}  // namespace thimble
