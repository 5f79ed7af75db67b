// The fastest schedule found for any budget. All schedules it chooses from are the same whatever the
// budget is, so that a smaller budget never gives a faster plan or a larger arena:
//   - those of every other policy, as they are and with what is never worth computing again kept;
//   - the frontier of the chain search: segments, and what stays inside each block;
//   - segments whose insides are halved, for the least memory;
//   - for graphs small enough, of any shape, the frontier of the eviction search.
// Each of them counts as it is and with its spare room used. Below the smallest of them, and for
// budgets below it alone, come the leanest, squeezed (plan/search/reduce_peak.h), all of them slower.
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
  explicit OptimalPlanner(const PlanRequest& request);
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

  size_t affordable(size_t least, size_t most) const;
  // As it is, and with what is never worth computing again kept.
  void add(Schedule schedule);
  void add_policies();
  void add_anchors();
  void add_recursive_segments();
  void add_evictions(Bytes everything);
  void look_between(size_t anchor);
  void reduce_peak();

  const PlanRequest request_;
  const ForwardPass pass_;
  const std::vector<Block> blocks_;
  const ChainPlans chain_;
  const std::vector<bool> never_recomputed_;  // by value
  SchedulePool pool_;
  std::vector<Anchor> anchors_;
  std::vector<Schedule> leanest_;        // whatever was asked
  std::optional<SchedulePool> reduced_;  // once they are asked for
};

}  // namespace thimble
