// Whether a plan that was saved is sound: replayed, byte range by byte range, against the step of the
// recipe that lies beside it.
#pragma once

#include <optional>
#include <string>

#include "pipeline/pipeline.h"
#include "recipe/plan_file.h"

namespace thimble {

// The first fault of any of the plans, or of one beside the first. Nothing: they are sound.
std::optional<std::string> find_fault(const PlanFile& file);

// The same where the plan's device may be missing: how much scratch its kernels want is taken on trust.
std::optional<std::string> find_fault_on_any_device(const PlanFile& file);
// UserError where that finds one; `where` is what was named: a plan file or a run.
void check_on_any_device(const PlanFile& file, const std::string& where);

// Saves what was planned, for find_fault().
void save_plan(const std::string& path, const PlannedTraining& planned);

}  // namespace thimble
