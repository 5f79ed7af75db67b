#include "plan/segments.h"

#include "plan/make_plan.h"

namespace thimble {

Schedule schedule_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                           const std::vector<size_t>& starts) {
  std::vector<bool> kept(pass.graph.values.size(), false);
  for (const size_t start : starts) {
    for (const ValueId value : blocks[start].enters) kept[value.at()] = true;
  }
  return schedule_keeping(pass, kept);
}

void BestSchedule::offer(const Schedule& schedule) {
  const Plan plan = lay_out(request_, schedule);
  const auto fits = [&](Bytes arena) { return request_.budget && arena <= *request_.budget; };
  bool better = !best_.has_value();
  if (!better && fits(plan.arena) && fits(arena_)) {
    better = plan.predicted_seconds < seconds_;
  } else if (!better) {
    better = plan.arena < arena_;
  }
  if (!better) return;
  best_ = schedule;
  arena_ = plan.arena;
  seconds_ = plan.predicted_seconds;
}

}  // namespace thimble
