#include "plan/schedule/segments.h"

#include "plan/search/schedule_pool.h"

namespace thimble {

std::vector<size_t> equal_starts(const std::vector<Block>& blocks, size_t segments) {
  double total = 0;
  for (const Block& block : blocks) total += static_cast<double>(block.made.count);
  std::vector<size_t> starts;
  double sum = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const double due =
        total * static_cast<double>(starts.size() + 1) / static_cast<double>(segments);
    if (b > 0 && sum >= due) starts.push_back(b);
    sum += static_cast<double>(blocks[b].made.count);
  }
  return starts;
}

Schedule schedule_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                           const std::vector<size_t>& starts) {
  std::vector<bool> kept(pass.graph.values.size(), false);
  for (const size_t start : starts) {
    for (const ValueId value : blocks[start].enters) kept[value.at()] = true;
  }
  const int last = starts.empty() ? 0 : blocks[starts.back()].begin;
  for (size_t v = 0; v < kept.size(); ++v) {
    if (pass.is_forward[v] && pass.made_at(make_id<ValueId>(v)) >= last) kept[v] = true;
  }
  return schedule_keeping(pass, kept);
}

Schedule choose_schedule(const PlanRequest& request, std::vector<Schedule> schedules) {
  SchedulePool pool(request, SchedulePool::Slack::left);
  for (Schedule& schedule : schedules) pool.add(std::move(schedule));
  if (request.budget) {
    if (const auto fastest = pool.fastest_within(*request.budget)) return *fastest->schedule;
  }
  return *pool.smallest().schedule;
}

}  // namespace thimble
