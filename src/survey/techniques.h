// The memory that each technique of a recipe saves by itself, and all of them together. Only plans.
#pragma once

#include "pipeline/pipeline.h"
#include "report/technique_table.h"

namespace thimble {

// The techniques are those that the recipe asks for. Where it asks for none, some of every kind,
// and "combined" is those that make the least of a step together.
TechniqueReport compare_techniques(const Recipe& recipe, const PlannedTraining& planned);

}  // namespace thimble
