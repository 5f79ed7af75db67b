// Lines of a run's metrics as curves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "model/model.h"
#include "report/page_data.h"

namespace thimble {

// Loss (training and test), every metric of the model, the learning rate and the time of a step, in
// this order, as far as lines have them.
std::vector<Curve> curves_of(const std::vector<nlohmann::json>& lines,
                             const std::vector<Metric>& metrics);

// 0: no line has a time.
double median_step_seconds(const std::vector<nlohmann::json>& lines);

}  // namespace thimble
