// The frontier of memory and time: every policy on the same graph.
#pragma once

#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "report/frontier.h"

namespace thimble {

struct Frontier {
  std::string model;
  std::string costs;  // where the times are from
  std::vector<FrontierPoint> points;
};

// Plans with every policy, and with the one that goes by a budget from its floor to everything
// kept.
Frontier sweep(const Recipe& recipe, Machine& machine);

}  // namespace thimble
