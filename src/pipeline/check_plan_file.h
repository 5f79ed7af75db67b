// Whether a plan that was saved is sound: replayed, byte range by byte range, against the step of the
// recipe that lies beside it.
#pragma once

#include <optional>
#include <string>

#include "pipeline/pipeline.h"
#include "recipe/plan_file.h"

namespace thimble {

// What is wrong with any of the plans, or with one and the first together; nothing: they are sound.
std::optional<std::string> find_fault(const PlanFile& file);

// UserError where the plans cannot be read as those of the recipe's step. A plan of another machine can: how
// much scratch that one's kernels need is taken on trust.
void check_legible(const PlanFile& file);

// Saves what was planned, for find_fault().
void save_plan(const std::string& path, const PlannedTraining& planned);

}  // namespace thimble
