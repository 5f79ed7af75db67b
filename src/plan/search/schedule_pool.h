// Schedules to choose from, each as it is and, if asked for, with its spare room used
// (plan/search/fill_slack.h): all of it, or, where that cannot be laid out well enough, nearly all. What
// each costs is known at once; the rest, which takes longer, is done only where it decides, and once
// for schedules that are the same: layouts, and the fuller schedules. Those count only if their arenas are not below the live peaks
// that they come from: then nothing is missed by not looking at what comes from peaks above a
// budget.
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
  // Whether the fuller schedules are among them, or each as it is only.
  enum class Slack : uint8_t { left, used };
  SchedulePool(const PlanRequest& request, Slack spare, const SearchLimits& limits = {})
      : request_(request), limits_(limits), spare_(limits.slack ? spare : Slack::left) {}

  // Its place; that of one which is the same call for call, where there is one.
  size_t add(Schedule schedule);
  // `floor`: the fuller schedule does not count unless it takes longer than that.
  size_t add(Schedule schedule, const ScheduleCost& known, double floor = 0);

  // Of those added so far, only schedules that no other clearly beats have fuller ones from now on:
  // room is looked for where it can pay. In very large graphs none that is added later has any.
  void settle();

  const ScheduleCost& cost(size_t index) const { return plain_[index].cost; }
  // What the fuller schedule of one of them takes.
  double fuller_seconds(size_t index);
  // Of all as they were added.
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
  // As they were added, the places of those of the lowest live peaks; so many at most.
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
    // By one that takes no more memory and clearly less time: it has no fuller ones.
    bool beaten = false;
    std::array<std::optional<Entry>, 2> fuller = {};  // the fullest first
  };

  // How full the fuller schedules are: all of the room, and nearly all.
  size_t fuller_levels() const { return limits_.slack_left ? 2 : 1; }
  // So large that looking for room takes as long as all else.
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
  std::map<Digest, Bytes> arenas_;   // of whatever was laid out
  bool settled_ = false;
  double least_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace thimble
