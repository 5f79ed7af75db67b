// A bound that no plan of a step is below, from its graph alone, in linear time. Stages run in the order of the graph
// whatever is recomputed, so at each of them is live
//
//   what stays from step to step, and from microbatch to microbatch
//   + what cannot be recomputed, from its making to its last reader: gradients above all
//   + what the stage itself reads and makes, and its scratch
//
// And before a node runs, one of its inputs was made last, while all others were there.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct LeastBytes {
  Bytes persistent;
  Bytes carried;       // from microbatch to microbatch, beside those
  Bytes largest_call;  // with both: of any one call by itself
  Bytes all;           // the bound
  NodeId at;           // where it is reached
};

LeastBytes least_bytes(const Graph& graph, const Costs& costs);

// By value: the one whose bytes it lies in, through views and next versions.
std::vector<ValueId> bytes_owners(const Graph& graph);

}  // namespace thimble
