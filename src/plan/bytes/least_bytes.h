// A lower bound on the arena of every plan of a step, from its graph alone, in linear time. Stages
// run in the order of the graph whatever is recomputed. So the live bytes at a stage are at least
//
//   what stays from step to step, and from microbatch to microbatch
//   + what cannot be recomputed, from its making to its last reader: gradients above all
//   + what the stage itself reads and makes, and its scratch
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
