// The independent check every plan passes before it runs. Slow and obvious; shares no code with the
// planner: it replays the addresses byte range by byte range.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Empty when the plan is sound; else the first thing wrong with it. Sound means: every read finds
// the right version of the right value, whole, at bytes nobody overwrote; a step overwrites what it
// reads only where its op allows; every side effect happens exactly once; results and the final
// versions of persistent values are in place at the end; scratch is as large as the kernels ask;
// arena and live peak are what the plan claims.
std::optional<std::string> find_fault(const Graph& graph, const Costs& costs, const Plan& plan);

// Throws InternalError with the fault.
void verify_plan(const Graph& graph, const Costs& costs, const Plan& plan);

}  // namespace thimble
