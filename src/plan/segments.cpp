#include "plan/segments.h"

#include "plan/make_plan.h"

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

bool BestSchedule::is_better(Bytes arena, double seconds) const {
  if (!best_) return true;
  const auto fits = [&](Bytes bytes) { return request_.budget && bytes <= *request_.budget; };
  return fits(arena) && fits(arena_) ? seconds < seconds_ : arena < arena_;
}

void BestSchedule::offer(const Schedule& schedule) {
  // Layouts take their time: none for a schedule that even the best of them would not help.
  const Outlook hope = outlook(request_, schedule);
  if (!is_better(hope.least, hope.seconds)) return;
  const Plan plan = lay_out(request_, schedule);
  if (!is_better(plan.arena, plan.predicted_seconds)) return;
  best_ = schedule;
  arena_ = plan.arena;
  seconds_ = plan.predicted_seconds;
}

}  // namespace thimble
