// Spreads the reuse of bytes over the arena, for devices that run several calls at a time.
//
// Packers put scratch and short-lived values at the same low bytes again and again:
//
//   call       0    1    2    3      becomes    0    1    2    3     ([s]: scratch)
//   arena |    .    .    .    .                 .   [s]   .   [s]
//         |   [s]  [s]  [s]  [s]               [s]   .   [s]   .
//
// Calls that share bytes wait for each other, even if they are otherwise independent.
#pragma once

#include "plan/plan.h"

namespace thimble {

// The plan, with short-lived buffers moved to the bytes that were free for longest. The calls,
// their order and the arena are the same. Deterministic. Plans of more than some ten thousand
// buffers, and plans whose policy shares no bytes, are not changed.
Plan spread_reuse(const Graph& graph, const Costs& costs, Plan plan);

}  // namespace thimble
