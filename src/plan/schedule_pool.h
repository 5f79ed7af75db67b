// Schedules to choose from. What each costs is known at once; layouts, which take longer, are made
// only where they decide.
#pragma once

#include <optional>
#include <vector>

#include "plan/make_plan.h"

namespace thimble {

class SchedulePool {
 public:
  explicit SchedulePool(const PlanRequest& request) : request_(request) {}

  ScheduleCost add(Schedule schedule);
  void add(Schedule schedule, const ScheduleCost& known);

  // The one of least predicted time (then of least memory) whose arena is within `budget`.
  struct Pick {
    const Schedule* schedule = nullptr;
    double seconds = 0;
    Bytes arena;
  };
  std::optional<Pick> fastest_within(Bytes budget);
  // The one of least arena (then of least time). REQUIRES: there is one.
  Pick smallest();

 private:
  struct Entry {
    Schedule schedule;
    ScheduleCost cost;
    std::optional<Bytes> arena;
  };

  Bytes arena_of(Entry& entry);
  static Pick pick(const Entry& entry) { return {&entry.schedule, entry.cost.seconds, *entry.arena}; }

  const PlanRequest& request_;
  std::vector<Entry> entries_;
};

}  // namespace thimble
