// A plan as rectangles: which bytes of the arena are in use from when to when, and by what. Read from
// the addresses that calls are handed, not from the planner's buffers.
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

// A copy of a value; of scratch, of none.
struct Occupant {
  ValueId value;
  int made = 0;  // the call that makes it; 0, too, of what is there when the step begins
};

struct Allocation {
  Bytes at;
  Bytes size;  // with what alignment adds
  int first = 0;
  int last = 0;  // inclusive
  Role role = Role::activation;
  std::vector<Occupant> occupants;  // in order; one at least

  // The one in these bytes at `call`. REQUIRES: first <= call <= last.
  const Occupant& at_call(int call) const;
};

// In order of their first calls. Allocations that are live at a call add up to the sum of verify_plan
// there: at plan.peak_call to plan.peak_live, role by role to plan.peak_by_role.
std::vector<Allocation> allocations_of(const Graph& graph, const Plan& plan);

}  // namespace thimble
