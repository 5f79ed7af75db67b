// How long a planned step takes as a whole, whatever its data.
#pragma once

#include "pipeline/pipeline.h"

namespace thimble {

// Seconds of a step, the median of several, on inputs and weights of random numbers. UserError when
// the device has no room for the step.
double seconds_of_step(const PlannedTraining& planned);

}  // namespace thimble
