// Orders of a graph's nodes.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

// Nodes as `order` lists them (every node once); their ids change accordingly. The caller sees to it that
// the graph stays well formed.
void put_in_order(Graph& graph, const std::vector<NodeId>& order);

// Nodes in the order of their phases, and as they were within each: puts nodes that were added last
// where their phase belongs.
void sort_by_phase(Graph& graph);

}  // namespace thimble
