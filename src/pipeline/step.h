// A step of a run: its graph with the cost of each node, and then its plan. A run is a set of such
// steps of one model: full micro-batches, a smaller last one, lengths of records, evaluation. Each
// has a graph and a verified plan of its own, and all share one arena:
//
//   first      │ weights, state │ sums of a step │ activations, gradients, scratch     │
//   of a step  │ the same       │ the same       │ its own                             │
//   between    │ the same       │ its own                                              │
//              0                                                                  arena
//
// The first takes most memory and is planned by itself. The others are planned into its arena.
// Values that persist between steps, and sums over micro-batches (gradient accumulation), have the
// same addresses in all of them, by name.
#pragma once

#include <span>
#include <string>

#include "pipeline/machine.h"
#include "pipeline/training_graph.h"

namespace thimble {

struct Step {
  Recipe recipe;
  StepShape shape;
  Model model;
  OptimizerInputs scalars = {};  // invalid where nothing is trained
  Costs costs = {};
  Machine* machine = nullptr;  // that priced it; null: times do not matter
  int priced_at = 0;           // Machine::generation()

  // The planner's request for this step. REQUIRES: the step was priced by the machine's current
  // times, outlives the request, and is not moved.
  PlanRequest request(std::optional<Bytes> budget = {}) const;
  // Prices it again by the machine's current times.
  void price();
};

struct PlannedStep : Step {
  Plan plan = {};
};

// The recipe's step of that shape, priced. REQUIRES: the recipe was checked.
Step build_step(const Recipe& recipe, const StepShape& shape, Machine& machine);

// Plans the step by itself, within its recipe's budget: by the schedule, or else by its recipe's
// planner. The first `room` bytes are reserved. Returns nothing on success: the plan is there,
// verified.
std::optional<Infeasible> plan_alone(PlannedStep& step, const std::optional<Schedule>& schedule,
                                     Bytes room);

// Plans `step` into the arena of `first`, by the first of the policies that fits. False: none does.
// Checks the plan, and that both agree on shared values. Constants of this step alone (an LSTM's
// first state of so many rows) are overwritten while other steps run. They lie in the first `room`
// bytes where the first plan left those free (PlanRequest::reserved), else at bytes that no other
// value has.
bool plan_into_arena_of(const PlannedStep& first, PlannedStep& step,
                        std::span<const std::string> policies, int microbatches, Bytes room = {});

// Bytes of constants that the step keeps and the first does not.
Bytes own_constants(const PlannedStep& first, const PlannedStep& step);

}  // namespace thimble
