// A plan on disk: the recipe it was made for, the plan, and that of a smaller last microbatch.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "recipe/recipe.h"

namespace thimble {

// `recipe` is completed, its codec chosen; `rest` may be null.
void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan, const Plan* rest);

struct PlanFile {
  Recipe recipe;
  Plan plan;
  std::optional<Plan> rest;
};
// UserError when the file is not a plan, or one of another version.
PlanFile load_plan(const std::string& path);

}  // namespace thimble
