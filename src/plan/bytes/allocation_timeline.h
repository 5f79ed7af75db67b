// A plan as rectangles, offset × live range: which bytes of the arena hold which values during
// which calls. Derived from the addresses of calls, not from the planner's buffers.
//
//   address
//      │   ┌───────────┐ scratch
//      │   ├───────────┴───────────────┐
//      │   │ x          → relu(x)      │   one allocation, two occupants (in place)
//      │   └───────────────────────────┘
//      └──────────────────────────────────▶ call
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

// A copy of a value in an allocation. Scratch has no value.
struct Occupant {
  ValueId value;
  int made = 0;  // the call that makes it; also 0 if it is there when the step begins
};

struct Allocation {
  Bytes at;    // its address: the offset in the arena
  Bytes size;  // with padding for alignment
  int first = 0;
  int last = 0;  // inclusive
  Role role = Role::activation;
  std::vector<Occupant> occupants;  // in order; one at least

  // The occupant at `call`. REQUIRES: first <= call <= last.
  const Occupant& at_call(int call) const;
};

// In order of their first calls. At plan.peak_call, live allocations add up to plan.peak_live, and
// role by role to plan.peak_by_role.
std::vector<Allocation> allocations_of(const Graph& graph, const Plan& plan);

}  // namespace thimble
