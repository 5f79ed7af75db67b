// A lower bound on the arena of every plan of a step, from its graph alone, in linear time. Stages
// run in the order of the graph whatever is recomputed. So the live bytes at a stage are at least
//
//   values that persist between steps, or between micro-batches
//   + values that cannot be recomputed, from maker to last reader: gradients above all
//   + inputs, results and scratch of the stage itself
//
// Also, while the last-made input of a node is computed, its other inputs are live.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct LeastBytes {
  Bytes persistent;
  Bytes carried;       // sums over micro-batches (gradient accumulation) and the like, beside those
  Bytes largest_call;  // persistent + carried + the inputs, results and scratch of one call
  Bytes all;           // the bound
  NodeId at;           // where it is reached
};

LeastBytes least_bytes(const Graph& graph, const Costs& costs);

// By value: the owner of its bytes, through views and next versions.
std::vector<ValueId> bytes_owners(const Graph& graph);

}  // namespace thimble
