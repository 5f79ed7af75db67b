#include "plan/schedule_pool.h"

#include <algorithm>

namespace thimble {

ScheduleCost SchedulePool::add(Schedule schedule) {
  const ScheduleCost cost = cost_of(request_, schedule);
  add(std::move(schedule), cost);
  return cost;
}

void SchedulePool::add(Schedule schedule, const ScheduleCost& known) {
  entries_.push_back({std::move(schedule), known, {}});
}

Bytes SchedulePool::arena_of(Entry& entry) {
  if (!entry.arena) entry.arena = lay_out(request_, entry.schedule).arena;
  return *entry.arena;
}

std::optional<SchedulePool::Pick> SchedulePool::fastest_within(Bytes budget) {
  std::vector<Entry*> fastest_first;
  for (Entry& entry : entries_) {
    if (entry.cost.live_peak <= budget) fastest_first.push_back(&entry);
  }
  std::stable_sort(fastest_first.begin(), fastest_first.end(), [](const Entry* a, const Entry* b) {
    return a->cost.seconds < b->cost.seconds;
  });
  Entry* best = nullptr;
  for (Entry* entry : fastest_first) {
    if (best != nullptr && entry->cost.seconds > best->cost.seconds) break;
    if (arena_of(*entry) > budget) continue;
    if (best == nullptr || *entry->arena < *best->arena) best = entry;
  }
  if (best == nullptr) return std::nullopt;
  return pick(*best);
}

SchedulePool::Pick SchedulePool::smallest() {
  std::vector<Entry*> leanest_first;
  for (Entry& entry : entries_) leanest_first.push_back(&entry);
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
