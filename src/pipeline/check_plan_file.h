// Saved plans, and their check: a plan is replayed, byte range by byte range, against the step of
// the recipe in its file.
#pragma once

#include <optional>
#include <string>

#include "pipeline/pipeline.h"
#include "recipe/plan_file.h"

namespace thimble {

// The first fault of the file's plans: of each by itself, and of each together with the first
// (verify_shared_arena). None: they are sound.
std::optional<std::string> find_fault(const PlanFile& file);

// The same where the plan's device may be missing: the sizes of its kernels' scratch are then not
// checked.
std::optional<std::string> find_fault_on_any_device(const PlanFile& file);
// UserError with that fault. `where` names the plan file or the run.
void check_on_any_device(const PlanFile& file, const std::string& where);

// Saves the plans of all shapes, for find_fault().
void save_plan(const std::string& path, const PlannedTraining& planned);

}  // namespace thimble
