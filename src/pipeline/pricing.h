// The cost of a recipe's step: its whole time, and the share of communication between ranks.
#pragma once

#include <string>

#include "pipeline/step.h"

namespace thimble {

// Communication between ranks in a step, part of Machine::price(). Nothing overlaps with it here.
struct Communication {
  Interconnect link;
  double seconds = 0;
  Bytes sent;           // by each rank
  int collectives = 0;  // calls
};
Communication communication_of(const Recipe& recipe, const Graph& graph, const Plan& plan,
                               Machine& machine);

// The plan of the full microbatches, with time and FLOPs of the whole step: by itself it takes the last
// microbatch to be as large as the others. Null: it is.
Plan priced_as_a_whole(const PlannedStep& full, const PlannedStep* rest);

}  // namespace thimble
