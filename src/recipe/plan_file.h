// A plan on disk: the recipe it was made for, the plans of all shapes of its step, and the
// techniques that its budget selected. The others share the arena of the first plan.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "recipe/recipe.h"
#include "recipe/selection_report.h"

namespace thimble {

struct ShapedPlan {
  StepShape shape;
  Plan plan;
};

// `recipe` is completed, its codec chosen. REQUIRES: there is a plan.
void save_plan(const std::string& path, const Recipe& recipe, std::span<const ShapedPlan> plans,
               const std::optional<SelectionRecord>& choices = {});

struct PlanFile {
  Recipe recipe;
  std::vector<ShapedPlan> plans;  // one at least
  std::optional<SelectionRecord> choices = {};
};
// UserError when the file is not a plan, or one of another version.
PlanFile load_plan(const std::string& path);

}  // namespace thimble
