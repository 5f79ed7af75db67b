// Orders of a graph's nodes.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

// Nodes as `order` lists them, each once; their ids change accordingly. Nodes that are not listed
// go. The caller sees to it that the graph stays well formed.
void put_in_order(Graph& graph, const std::vector<NodeId>& order);

// Nodes in the order of their phases, and as they were within each: puts nodes that were added last
// where their phase belongs.
void sort_by_phase(Graph& graph);

// Moves the nodes from index `first` on, in order, to where `slots` says: in front of the node with
// that index.
void insert_nodes(Graph& graph, size_t first, const std::vector<size_t>& slots);

// Moves the nodes from index `first` on to right behind the last of the nodes whose results they
// read, so that what they read last can go early. REQUIRES: they overwrite nothing.
void hoist_nodes(Graph& graph, size_t first);

}  // namespace thimble
