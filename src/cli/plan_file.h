// A plan on disk: the recipe it was made for, the plan, and that of a smaller last microbatch.
#pragma once

#include <string>

#include "pipeline/pipeline.h"

namespace thimble {

// `rest` may be null.
void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan, const Plan* rest);

struct PlanFile {
  Recipe recipe;
  Plan plan;
  std::optional<Plan> rest;
};
// Throws UserError when the file is not a plan.
PlanFile load_plan(const std::string& path);

}  // namespace thimble
