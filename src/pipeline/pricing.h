// What a recipe's step costs: all of it, and what ranks add to it.
#pragma once

#include <string>

#include "pipeline/step.h"

namespace thimble {

// What ranks have to do with each other in a step, in Machine::price() as well. Nothing overlaps it here.
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
