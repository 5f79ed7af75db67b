// The schedules that a planner chooses from. Each counts as it is and, if asked for, with its slack
// filled (plan/search/fill_slack.h): fully, or nearly so where a full one packs badly. The cost of
// a schedule is computed when it is added. Layouts and filled schedules take longer, so they are
// made only where they can decide, and once for equal schedules. A filled schedule counts only if
// its arena is not below the live peak of its original. So a budget below that peak rules out both,
// and neither is laid out.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/io/sha256.h"
#include "plan/make_plan.h"
#include "plan/search/search_limits.h"

namespace thimble {

class SchedulePool {
 public:
  // Whether the pool also has schedules with their slack filled.
  enum class Slack : uint8_t { left, used };
  SchedulePool(const PlanRequest& request, Slack spare, const SearchLimits& limits = {})
      : request_(request), limits_(limits), spare_(limits.slack ? spare : Slack::left) {}

  // Returns its index, or that of an equal schedule.
  size_t add(Schedule schedule);
  // `floor`: seconds; the filled schedule counts only if it takes longer.
  size_t add(Schedule schedule, const ScheduleCost& known, double floor = 0);

  // From now on, slack is filled only in schedules that no other one of those added so far clearly
  // beats. In very large graphs, schedules added later get none filled.
  void settle();

  const ScheduleCost& cost(size_t index) const { return plain_[index].cost; }
  // The time of the filled schedule.
  double fuller_seconds(size_t index);
  // The least over all schedules as they were added.
  double least_seconds() const { return least_seconds_; }

  // The one of least predicted time (then of least memory) whose arena is within `budget`.
  struct Pick {
    const Schedule* schedule = nullptr;
    double seconds = 0;
    Bytes arena;
  };
  // Arenas below `least` do not count.
  std::optional<Pick> fastest_within(Bytes budget, Bytes least = {});
  // The one of least arena (then of least time). REQUIRES: there is one.
  Pick smallest();
  // Indices of the `count` schedules of lowest live peak, as they were added.
  std::vector<size_t> leanest(size_t count) const;
  const Schedule& schedule(size_t index) const { return plain_[index].schedule; }
  // As it was added, laid out.
  Bytes arena(size_t index) { return arena_of(plain_[index]); }
  bool empty() const { return plain_.empty(); }

 private:
  struct Entry {
    Schedule schedule;
    ScheduleCost cost;
    std::optional<Bytes> arena = {};
  };
  struct Plain : Entry {
    double floor = 0;
    // Another takes no more memory and clearly less time: slack is not filled in this one.
    bool beaten = false;
    std::array<std::optional<Entry>, 2> fuller = {};  // the fullest first
  };

  // How far slack is filled: all of it, and nearly all.
  size_t fuller_levels() const { return limits_.slack_left ? 2 : 1; }
  // So large that filling slack would take as long as everything else.
  bool is_large() const { return std::ssize(request_.graph.nodes) > limits_.large_nodes; }
  using Digest = Sha256::Digest;
  static Digest digest_of(const Schedule& schedule);
  size_t insert(const Digest& digest, Schedule schedule, const ScheduleCost& known, double floor);
  std::vector<size_t> leanest_first() const;
  Entry& fuller(Plain& plain, size_t which);
  Bytes arena_of(Entry& entry);
  static Pick pick(const Entry& entry) {
    return {&entry.schedule, entry.cost.seconds, *entry.arena};
  }

  const PlanRequest& request_;
  const SearchLimits limits_;
  const Slack spare_;
  std::vector<Plain> plain_;
  std::map<Digest, size_t> places_;  // of `plain_`
  std::map<Digest, Bytes> arenas_;   // of schedules that were laid out
  bool settled_ = false;
  double least_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace thimble
