// Small training steps to measure planners on: forward, loss and backward, built with the public
// builder and differentiated like any model; without updates (a gradient ends where it is made,
// unless it is added into).
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace thimble {

struct OptimalityCase {
  std::string name;
  Graph graph;
  Costs costs;
};

// 15 to 40 nodes each. Costs are the null device's (a large GPU in round figures) for tensors of
// real size; convolutions ask for a quarter of their output as scratch.
std::vector<OptimalityCase> optimality_cases();

}  // namespace thimble
