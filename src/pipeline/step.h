// A step of a run: its graph with what each node costs, and, planned, every byte of it. A run is a set of
// such steps of one model: full microbatches, a smaller last one, lengths of records, evaluation. Each has
// a graph and a verified plan of its own, and all share one arena:
//
//   first      │ weights, state │ sums of a step │ activations, gradients, scratch     │
//   of a step  │ the same       │ the same       │ its own                             │
//   between    │ the same       │ its own                                              │
//              0                                                                  arena
//
// The first is planned by itself and takes most. The others are planned into its arena. Values that
// are kept from step to step, or added up within one, lie at the same bytes in all of them, by name.
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
  OptimizerInputs scalars = {};  // none, where nothing is trained
  Costs costs = {};
  Machine* machine = nullptr;  // that priced it; null: its times do not matter
  int priced_at = 0;           // Machine::generation()

  // How the recipe's planner is asked for a plan. REQUIRES: times are those of the machine; the step
  // outlives the request and stays where it is.
  PlanRequest request(std::optional<Bytes> budget = {}) const;
  // By what is known of times now.
  void price();
};

struct PlannedStep : Step {
  Plan plan = {};
};

// The recipe's step of that shape, priced. REQUIRES: the recipe was checked.
Step build_step(const Recipe& recipe, const StepShape& shape, Machine& machine);

// Plans the step by itself, within its recipe's budget: by the schedule, or else by its recipe's planner.
// The first `room` bytes are left to others. Nothing: the plan is there, verified.
std::optional<Infeasible> plan_alone(PlannedStep& step, const std::optional<Schedule>& schedule,
                                     Bytes room);

// Plans `step`, complete but for its plan, into the arena of `first`, by the first of the policies that
// fits. False: none does. Checks the plan, and that both agree on shared values. Constants of this step
// alone (an LSTM's first state of so many rows) are lost while others run. They lie in the first `room`
// bytes where the first plan left those free (PlanRequest::reserved), else beside everything.
bool plan_into_arena_of(const PlannedStep& first, PlannedStep& step,
                        std::span<const std::string> policies, int microbatches, Bytes room = {});

// Bytes of constants that the step keeps and the first does not.
Bytes own_constants(const PlannedStep& first, const PlannedStep& step);

}  // namespace thimble
