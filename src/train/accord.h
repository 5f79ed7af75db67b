// What ranks must have in common before they train together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "pipeline/pipeline.h"

namespace thimble {

struct Terms {
  std::string program;    // version and build
  nlohmann::json recipe;  // all fields (recipe/settings.h)
  nlohmann::json data;    // fingerprint (data/fingerprint.h)
};

// UserError, the same on every rank, naming the first rank that has something else than rank 0, and what.
// Called by all ranks.
void check_terms(Communicator& ranks, const Terms& own);

// The same of the plans that the ranks have made of it, by their digests: one order of calls, and so of
// meetings, and the same addresses.
using Variants = std::vector<std::unique_ptr<PlannedStep>>;
void check_plans(Communicator& ranks, const Variants& training, const Variants& evaluation);

}  // namespace thimble
