#include "plan/schedule_pool.h"

#include <algorithm>

#include "plan/spare_room.h"

namespace thimble {

ScheduleCost SchedulePool::add(Schedule schedule) {
  const ScheduleCost cost = cost_of(request_, schedule);
  add(std::move(schedule), cost);
  return cost;
}

void SchedulePool::add(Schedule schedule, const ScheduleCost& known, double floor) {
  plain_.push_back({{std::move(schedule), known}, floor});
  least_seconds_ = std::min(least_seconds_, known.seconds);
}

void SchedulePool::fill(Plain& plain) {
  if (plain.fuller) return;
  Schedule schedule = using_spare_room(request_, plain.schedule);
  const double seconds = predicted_seconds(request_, schedule);
  plain.fuller = Entry{std::move(schedule), {plain.cost.live_peak, seconds}};
}

double SchedulePool::fuller_seconds(size_t index) {
  fill(plain_[index]);
  return plain_[index].fuller->cost.seconds;
}

Bytes SchedulePool::arena_of(Entry& entry) {
  if (!entry.arena) entry.arena = lay_out(request_, entry.schedule).arena;
  return *entry.arena;
}

std::optional<SchedulePool::Pick> SchedulePool::fastest_within(Bytes budget) {
  // Where nothing has to be computed again, nothing can be gained.
  std::vector<Entry*> entries;
  for (Plain& plain : plain_) {
    if (plain.cost.live_peak <= budget && plain.cost.seconds <= least_seconds_) {
      entries.push_back(&plain);
    }
  }
  Entry* best = find_fastest(entries, budget);
  if (best != nullptr) return pick(*best);
  entries.clear();
  for (Plain& plain : plain_) {
    if (plain.cost.live_peak > budget) continue;
    entries.push_back(&plain);
    fill(plain);
    if (plain.fuller->cost.seconds > plain.floor) entries.push_back(&*plain.fuller);
  }
  best = find_fastest(entries, budget);
  if (best == nullptr) return std::nullopt;
  return pick(*best);
}

SchedulePool::Entry* SchedulePool::find_fastest(std::vector<Entry*> entries, Bytes budget) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->cost.seconds < b->cost.seconds;
  });
  Entry* best = nullptr;
  for (Entry* entry : entries) {
    if (best != nullptr && entry->cost.seconds > best->cost.seconds) break;
    if (arena_of(*entry) > budget) continue;
    if (best == nullptr || *entry->arena < *best->arena) best = entry;
  }
  return best;
}

SchedulePool::Pick SchedulePool::smallest() {
  std::vector<Entry*> leanest_first;
  for (Plain& plain : plain_) leanest_first.push_back(&plain);
  std::stable_sort(leanest_first.begin(), leanest_first.end(), [](const Entry* a, const Entry* b) {
    return a->cost.live_peak < b->cost.live_peak;
  });
  Entry* best = nullptr;
  for (Entry* entry : leanest_first) {
    if (best != nullptr && entry->cost.live_peak > *best->arena) break;
    const auto size = std::pair(arena_of(*entry), entry->cost.seconds);
    if (best == nullptr || size < std::pair(*best->arena, best->cost.seconds)) best = entry;
  }
  return pick(*best);
}

}  // namespace thimble
