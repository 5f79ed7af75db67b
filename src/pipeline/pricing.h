// The cost of a recipe's step: its whole time, and the share of communication between ranks.
#pragma once

#include <string>

#include "pipeline/step.h"

namespace thimble {

// Communication between ranks in a step. Machine::price() includes it. It is modelled without
// overlap with kernels.
struct Communication {
  Interconnect link;
  double seconds = 0;
  Bytes sent;           // by each rank
  int collectives = 0;  // calls
};
Communication communication_of(const Recipe& recipe, const Graph& graph, const Plan& plan,
                               Machine& machine);

// The plan of the full micro-batches, with time and FLOPs of the whole step. The plan alone counts
// the last micro-batch as a full one. `rest`: a smaller last one, or null.
Plan priced_as_a_whole(const PlannedStep& full, const PlannedStep* rest);

}  // namespace thimble
