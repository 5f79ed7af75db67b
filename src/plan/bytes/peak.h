// The live peak of a plan: its largest values, and which values are kept or recomputed.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct LiveValue {
  ValueId value;
  Bytes bytes;
  int made = 0;  // the call that made this copy; -1: present at the start
  int last_read = 0;
  // The time that recomputing the value from live ones would cost, per byte that dropping it frees.
  // Negative: it cannot be recomputed from them.
  double seconds_per_byte = -1;
};

// Values live at the plan's peak, largest first. Of values that share bytes, one is listed.
std::vector<LiveValue> live_at_peak(const Graph& graph, const Costs& costs, const Plan& plan);

// How a forward value, or its code, reaches the backward pass.
enum class ValueResidency : uint8_t {
  transient,  // dead before the backward pass
  kept,       // computed once
  recomputed,
};
// By value.
std::vector<ValueResidency> residencies_of(const Graph& graph, const Plan& plan);
// By value: how many recomputations read it.
std::vector<int> recomputed_readers(const Graph& graph, const Plan& plan);

}  // namespace thimble
