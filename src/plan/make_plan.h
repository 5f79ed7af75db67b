// The planner: policy -> schedule -> buffers (liveness) -> layout (offset assignment) -> plan.
#pragma once

#include "plan/plan.h"

namespace thimble {

// Throws UserError for an unknown policy, or a number that the policy does not take. Infeasible if
// the budget is below its smallest plan. The plan is not verified here: see verify_plan.
PlanResult make_plan(const PlanRequest& asked);

// The error for a budget below the smallest plan.
Infeasible infeasible(const PlanRequest& request, const Plan& smallest);

// Buffers, layout and cost of a given schedule. Decides the address of every value.
Plan lay_out(const PlanRequest& request, const Schedule& schedule);

// Only the arena of that plan.
Bytes arena_of(const PlanRequest& request, const Schedule& schedule);

// That plan; Infeasible if its arena is above the request's budget.
PlanResult lay_out_within(const PlanRequest& request, const Schedule& schedule);

// The part of lay_out() that needs no layout: the live peak and the predicted time. The arena is
// never below the live peak, and nearly always equal to it.
struct ScheduleCost {
  Bytes live_peak;
  double seconds = 0;
};
ScheduleCost cost_of(const PlanRequest& request, const Schedule& schedule);
double predicted_seconds(const PlanRequest& request, const Schedule& schedule);
// The cost of one run of a phase.
struct PhaseCost {
  double seconds = 0;
  double flops = 0;        // recomputation included
  double extra_flops = 0;  // of which recomputation
};
PhaseCost cost_of(const Graph& graph, const Costs& costs, const Plan& plan, Phase phase);

// The schedule a plan came from.
Schedule schedule_of(const Plan& plan);

}  // namespace thimble
