// Why a plan is as it is: see report/explain/explanation.h.
#pragma once

#include "pipeline/pipeline.h"
#include "report/explain/explanation.h"

namespace thimble {

// Plans the step's frontier, which takes about as long as planning it.
Explanation explain(const PlannedTraining& training);

}  // namespace thimble
