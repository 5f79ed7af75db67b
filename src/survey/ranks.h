// A recipe's step on more and more ranks, sharded in every way.
#pragma once

#include <vector>

#include "pipeline/pipeline.h"

namespace thimble {

struct RanksPoint {
  RanksSpec ranks;
  Bytes arena;  // of each rank
  Bytes weights, state;
  double seconds = 0;  // predicted, of a step
  Communication communication;
};

// For 1, 2, 4, ... ranks up to the recipe's, of one batch: numbers that do not share it evenly are
// left out, as are shardings that the recipe cannot have, and plans that do not fit its budget.
std::vector<RanksPoint> sweep_ranks(const Recipe& recipe, const std::shared_ptr<Machine>& machine);

}  // namespace thimble
