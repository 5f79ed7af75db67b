// Putting nodes that were added last where they belong.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

// Gives the nodes another order: `order` is, by new place, the old one. Their ids change
// accordingly.
void reorder_nodes(Graph& graph, const std::vector<size_t>& order);

// Nodes in the order of their phases, and as they were within each.
void sort_by_phase(Graph& graph);

}  // namespace thimble
