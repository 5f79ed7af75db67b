// The user's marks, which every planner obeys: results to keep, results to recompute.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// Shell patterns over the names of forward nodes ("stage3.*.conv2d*"). UserError when a pattern
// matches no node that it could apply to, or two patterns contradict each other.
struct Marks {
  std::vector<std::string> keep;
  std::vector<std::string> recompute;
};

void apply_marks(Graph& graph, const Marks& marks);

}  // namespace thimble
