// An execution order with a lower live peak: of two branches, the one that leaves fewer bytes runs
// first, of two gradients the one that frees more. No bit changes: sums are added up in the order
// of their `accumulate` links, which is kept.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

// A valid order of the nodes, chosen greedily by bytes made minus bytes freed. Phases stay in
// order, and the forward pass before the backward pass. The result is often the present order, and
// not always better: the caller compares.
std::vector<NodeId> peak_reducing_order(const Graph& graph);

}  // namespace thimble
