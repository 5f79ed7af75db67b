// The independent check every plan passes before it runs. Slow and obvious; shares no code with the
// planner: it replays the addresses byte range by byte range.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Empty when the plan is sound; else the first thing wrong with it. Sound means: every read finds
// the right version of the right value, whole, at bytes nobody overwrote; a call overwrites what it
// reads only where its op allows; every side effect happens exactly once; results and the final
// versions of persistent values are in place at the end; what is marked to be kept is made once;
// scratch is as large as the kernels ask; and what the plan claims is so: its arena, its live peak,
// where that is and what fills it, its FLOPs, and its seconds if it was made with the same costs.
std::optional<std::string> find_fault(const Graph& graph, const Costs& costs, const Plan& plan);

// Throws InternalError with the fault.
void verify_plan(const Graph& graph, const Costs& costs, const Plan& plan);

}  // namespace thimble
