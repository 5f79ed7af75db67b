// Plans as JSON, written and read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace thimble {

nlohmann::json to_json(const Plan& plan);
// Throws UserError when the JSON is not a plan. Whether the plan is sound is for verify_plan.
Plan plan_from_json(const nlohmann::json& json);

}  // namespace thimble
