// Why a plan is as it is: see report/explanation.h.
#pragma once

#include "fit/fit.h"
#include "report/explanation.h"

namespace thimble {

// `fit`: where a budget chose. Plans the step's frontier, which takes about as long as planning it.
Explanation explain(const PlannedTraining& training, const FitReport* fit = nullptr);

}  // namespace thimble
