// Why a plan is as large as it is.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct LiveValue {
  ValueId value;
  Bytes bytes;
  int made = 0;  // the call that made this copy; -1: present at the start
  int last_read = 0;
  // Of a value that could be dropped and computed again from what is live: the time that would cost
  // per byte it would free. Negative: it could not.
  double seconds_per_byte = -1;
};

// What is live at the plan's fullest call, largest first; values in the same bytes are named once.
std::vector<LiveValue> live_at_peak(const Graph& graph, const Costs& costs, const Plan& plan);

// What becomes of a forward value that the backward pass needs, or of its code.
enum class ValueResidency : uint8_t {
  transient,  // gone when the forward pass is done with it
  kept,       // made once
  recomputed,
};
// By value.
std::vector<ValueResidency> residencies_of(const Graph& graph, const Plan& plan);
// By value: how many nodes that are computed again read it.
std::vector<int> readers_again(const Graph& graph, const Plan& plan);

}  // namespace thimble
