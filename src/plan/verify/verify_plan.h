// The independent check of every plan before it runs. It is slow and obvious, and shares no code
// with the planner: it replays the addresses byte range by byte range.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace thimble {

// Empty when the plan is sound, else its first fault. A sound plan keeps these promises:
// - Every read finds the right version of the right value, complete and not overwritten.
// - A call overwrites its inputs only where its op allows.
// - Every side effect happens exactly once, and values marked `keep` are made once.
// - Results and the final versions of persistent values are in place at the end.
// - Scratch is at least as large as the kernels need.
// - Its claims are true: its arena, its live peak with call and roles, its FLOPs, and its seconds
//   if it was made with the same costs.
std::optional<std::string> find_fault(const Graph& graph, const Costs& costs, const Plan& plan);

// Throws InternalError with the fault.
void verify_plan(const Graph& graph, const Costs& costs, const Plan& plan);

}  // namespace thimble
