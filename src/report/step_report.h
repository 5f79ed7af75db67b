// A planned step for people and for programs, whatever it took to plan it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/pipeline.h"

namespace thimble {

// The facts of a planned step, as every command's JSON has them (docs/cli.md).
nlohmann::json summary_of(const PlannedTraining& planned);
// "batch 100 in microbatches of 30, the last of 10 (approximate)"; of a whole batch, "batch 100".
std::string batch_text(const PlannedTraining& planned);

}  // namespace thimble
