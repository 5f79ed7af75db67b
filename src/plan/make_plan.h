// The planner's front door: policy -> schedule -> buffers -> layout -> plan.
#pragma once

#include "plan/plan.h"

namespace thimble {

// Throws UserError for an unknown policy or a number it does not take. Infeasible when the budget is
// below what the policy needs. The plan is not verified here: see verify_plan.
PlanResult make_plan(const PlanRequest& asked);

// Buffers, layout and cost of a given schedule.
Plan lay_out(const PlanRequest& request, const Schedule& schedule);

// What is known of a schedule without placing anything: no layout of it is below `least`.
struct Outlook {
  Bytes least;
  double seconds = 0;
};
Outlook outlook(const PlanRequest& request, const Schedule& schedule);

// The schedule a plan came from.
Schedule schedule_of(const Plan& plan);

}  // namespace thimble
