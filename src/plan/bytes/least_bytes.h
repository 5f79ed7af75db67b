// A lower bound on the arena of every plan of a step, from its graph alone, in linear time. Stages
// run in the order of the graph whatever is recomputed. So the live bytes at a stage are at least
//
//   values that persist between steps, or between micro-batches
//   + values that cannot be recomputed, from maker to last reader: gradients above all
//   + inputs, results and scratch of the stage itself
//
// Also, all other inputs of a node are live while the last of them is computed.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct LeastBytes {
  Bytes persistent;
  Bytes carried;       // other bytes kept between micro-batches: sums (gradient accumulation)
  Bytes largest_call;  // persistent + carried + the inputs, results and scratch of one call
  Bytes all;           // the bound
  NodeId at;           // the node that needs so much
};

LeastBytes least_bytes(const Graph& graph, const Costs& costs);

// By value: the owner of its bytes, through views and next versions.
std::vector<ValueId> bytes_owners(const Graph& graph);

}  // namespace thimble
