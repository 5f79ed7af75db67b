#include "plan/search/schedule_pool.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "plan/search/fill_slack.h"

namespace thimble {

size_t SchedulePool::add(Schedule schedule) {
  const Digest digest = digest_of(schedule);
  if (const auto known = places_.find(digest); known != places_.end()) return known->second;
  const ScheduleCost cost = cost_of(request_, schedule);
  return insert(digest, std::move(schedule), cost, 0);
}

size_t SchedulePool::add(Schedule schedule, const ScheduleCost& known, double floor) {
  const Digest digest = digest_of(schedule);
  if (const auto at = places_.find(digest); at != places_.end()) return at->second;
  return insert(digest, std::move(schedule), known, floor);
}

size_t SchedulePool::insert(const Digest& digest, Schedule schedule, const ScheduleCost& known,
                            double floor) {
  call_watch(limits_);
  places_.emplace(digest, plain_.size());
  plain_.push_back({{std::move(schedule), known}, floor});
  plain_.back().beaten = settled_ && is_large();
  least_seconds_ = std::min(least_seconds_, known.seconds);
  return plain_.size() - 1;
}

SchedulePool::Digest SchedulePool::digest_of(const Schedule& schedule) {
  std::vector<int64_t> calls;
  calls.reserve(schedule.calls.size());
  for (const Call& call : schedule.calls) {
    calls.push_back(2 * static_cast<int64_t>(call.node.at()) + (call.recompute ? 1 : 0));
  }
  Sha256 hash;
  hash.update(std::as_bytes(std::span(calls)));
  return hash.digest();
}

void SchedulePool::settle() {
  // A fuller one may overtake what is not clearly faster.
  const double clearly = is_large() ? 1 : limits_.clearly_slower;
  settled_ = true;
  double fastest = std::numeric_limits<double>::infinity();
  for (const size_t i : leanest_first()) {
    plain_[i].beaten = plain_[i].cost.seconds >= clearly * fastest;
    fastest = std::min(fastest, plain_[i].cost.seconds);
  }
}

SchedulePool::Entry& SchedulePool::fuller(Plain& plain, size_t which) {
  constexpr std::array<int, 2> kPercentLeft = {0, 1};
  std::optional<Entry>& entry = plain.fuller[which];
  if (!entry) {
    call_watch(limits_);
    Schedule schedule =
        drop_redundant_recomputes(request_, plain.schedule, kPercentLeft[which], limits_);
    const double seconds = predicted_seconds(request_, schedule);
    entry = Entry{std::move(schedule), {plain.cost.live_peak, seconds}};
  }
  return *entry;
}

double SchedulePool::fuller_seconds(size_t index) { return fuller(plain_[index], 0).cost.seconds; }

Bytes SchedulePool::arena_of(Entry& entry) {
  if (!entry.arena) {
    const auto [known, fresh] = arenas_.try_emplace(digest_of(entry.schedule));
    call_watch(limits_);
    if (fresh) known->second = thimble::arena_of(request_, entry.schedule);
    entry.arena = known->second;
  }
  return *entry.arena;
}

std::optional<SchedulePool::Pick> SchedulePool::fastest_within(Bytes budget, Bytes least) {
  struct Candidate {
    Entry* entry = nullptr;
    Plain* plain = nullptr;
    size_t next = 0;  // of its fuller schedules, to be tried when this one does not fit
  };
  std::multimap<double, Candidate> by_seconds;
  const auto add = [&](Entry& entry, Plain& plain, size_t next) {
    by_seconds.insert({entry.cost.seconds, {&entry, &plain, next}});
  };
  const auto find = [&]() -> Entry* {
    Entry* best = nullptr;
    while (!by_seconds.empty()) {
      const auto [seconds, candidate] = *by_seconds.begin();
      if (best != nullptr && seconds > best->cost.seconds) break;
      by_seconds.erase(by_seconds.begin());
      const auto& [entry, plain, next] = candidate;
      if (arena_of(*entry) <= budget) {
        const bool counts = *entry->arena >= std::max(plain->cost.live_peak, least);
        if (counts && (best == nullptr || *entry->arena < *best->arena)) best = entry;
      } else if (next < fuller_levels()) {
        Entry& leaner = fuller(*plain, next);
        if (leaner.cost.seconds >= seconds) add(leaner, *plain, next + 1);
      }
    }
    return best;
  };
  constexpr size_t kNone = SIZE_MAX;
  // A schedule without recomputation has none to leave out.
  for (Plain& plain : plain_) {
    const bool fast = plain.cost.seconds <= least_seconds_;
    if (plain.cost.live_peak <= budget && fast) add(plain, plain, kNone);
  }
  Entry* best = find();
  if (best == nullptr) {
    for (Plain& plain : plain_) {
      if (plain.cost.live_peak > budget) continue;
      add(plain, plain, kNone);
      if (spare_ == Slack::left || plain.beaten) continue;
      Entry& fullest = fuller(plain, 0);
      if (fullest.cost.seconds > plain.floor) add(fullest, plain, 1);
    }
    best = find();
  }
  if (best == nullptr) return std::nullopt;
  return pick(*best);
}

std::vector<size_t> SchedulePool::leanest_first() const {
  std::vector<size_t> order(plain_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::pair(plain_[i].cost.live_peak, plain_[i].cost.seconds);
  });
  return order;
}

std::vector<size_t> SchedulePool::leanest(size_t count) const {
  std::vector<size_t> places = leanest_first();
  places.resize(std::min(count, places.size()));
  return places;
}

SchedulePool::Pick SchedulePool::smallest() {
  Entry* best = nullptr;
  const auto consider = [&](Entry& entry) {
    const auto size = std::pair(arena_of(entry), entry.cost.seconds);
    if (best == nullptr || size < std::pair(*best->arena, best->cost.seconds)) best = &entry;
  };
  for (const size_t i : leanest_first()) {
    Plain& plain = plain_[i];
    if (best != nullptr && plain.cost.live_peak > *best->arena) break;
    consider(plain);
    if (spare_ == Slack::left || plain.beaten) continue;
    double floor = plain.floor;
    for (size_t which = 0; which < fuller_levels(); ++which) {
      Entry& entry = fuller(plain, which);
      const bool slower = which == 0 ? entry.cost.seconds > floor : entry.cost.seconds >= floor;
      if (!slower || arena_of(entry) < plain.cost.live_peak) break;
      consider(entry);
      floor = entry.cost.seconds;
    }
  }
  return pick(*best);
}

}  // namespace thimble
