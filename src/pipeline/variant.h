// A run is a set of variants of one model: full microbatches, a smaller last one, lengths of records,
// evaluation. Each has a graph and a verified plan of its own, and all share one arena:
//
//   first      │ weights, state │ sums of a step │ activations, gradients, scratch     │
//   of a step  │ the same       │ the same       │ its own                             │
//   between    │ the same       │ its own                                              │
//              0                                                                  arena
//
// The first is planned by itself and takes most; the others are planned into its arena. What is
// kept from step to step, or added up within one, lies at the same bytes in all of them, by name.
#pragma once

#include <span>
#include <string>

#include "pipeline/training_graph.h"
#include "plan/plan.h"

namespace thimble {

struct Variant {
  VariantShape shape;
  Model model;
  OptimizerInputs scalars = {};  // none, where nothing is trained
  Costs costs = {};
  Plan plan = {};
};

// How the recipe's planner is asked for a plan of its step, in microbatches of that shape.
PlanRequest request_for(const Recipe& recipe, const VariantShape& shape, const Graph& graph,
                        const Costs& costs);

// Plans `variant`, all but whose plan is there, into the arena of `first`, by the first of the policies
// that fits. False: none does. Checks what they have in common as well as the plan. What only the
// variant keeps (an LSTM's first state of so many rows) is lost while others run. It lies in the first
// `room` bytes, where the first plan left them free (PlanRequest::reserved); else beside everything.
bool plan_into(const Variant& first, Variant& variant, std::span<const std::string> policies,
               int microbatches, Bytes room = {});

// Bytes of what the variant keeps and the first does not.
Bytes own_constants(const Variant& first, const Variant& variant);

}  // namespace thimble
