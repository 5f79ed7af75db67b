// Ranks that train together call their collectives in one order, and at the same addresses.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "pipeline/step.h"

namespace thimble {

// UserError, the same on every rank, naming the first rank that has planned something else than
// rank 0. Called by all ranks.
using Steps = std::vector<std::unique_ptr<PlannedStep>>;
void check_plans(Communicator& ranks, const Steps& training, const Steps& evaluation);

}  // namespace thimble
