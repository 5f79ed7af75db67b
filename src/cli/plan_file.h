// A plan on disk: the recipe it was made for, and the plan.
#pragma once

#include <string>

#include "pipeline.h"

namespace thimble {

void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan);

struct PlanFile {
  Recipe recipe;
  Plan plan;
};
// Throws UserError when the file is not a plan.
PlanFile load_plan(const std::string& path);

}  // namespace thimble
