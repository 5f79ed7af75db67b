// Putting nodes that were added last where their phase belongs.
#pragma once

#include "graph/graph.h"

namespace thimble {

// Nodes in the order of their phases, and as they were within each; their ids change accordingly.
void sort_by_phase(Graph& graph);

}  // namespace thimble
