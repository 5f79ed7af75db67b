// Independent nodes in the order that holds less: of two branches the one first that leaves less
// behind, of two gradients the one first that frees more. Orders change no bit: whatever is added up is
// added up in the order of its `accumulate` links, which is kept.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

// A well-formed order of the nodes, chosen greedily by bytes made less bytes freed; phases stay in order,
// and the forward pass before the backward pass. Often the order it has already. Not always
// better: the caller compares.
std::vector<NodeId> peak_reducing_order(const Graph& graph);

}  // namespace thimble
