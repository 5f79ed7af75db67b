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

Schedule choose_schedule(const PlanRequest& request, std::vector<Schedule> schedules) {
  size_t best = 0;
  Plan best_plan;
  for (size_t i = 0; i < schedules.size(); ++i) {
    Plan plan = lay_out(request, schedules[i]);
    const auto fits = [&](const Plan& p) { return request.budget && p.arena <= *request.budget; };
    const bool better = i == 0 || (fits(plan) && fits(best_plan)
                                       ? plan.predicted_seconds < best_plan.predicted_seconds
                                       : plan.arena < best_plan.arena);
    if (!better) continue;
    best = i;
    best_plan = std::move(plan);
  }
  return std::move(schedules[best]);
}

}  // namespace thimble
