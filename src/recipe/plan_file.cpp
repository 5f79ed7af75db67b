#include "recipe/plan_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/json_object.h"
#include "plan/plan_json.h"
#include "recipe/settings.h"

namespace thimble {
namespace {

constexpr std::string_view kFormat = "thimble-plan-10";
constexpr std::string_view kFamily = "thimble-plan-";

nlohmann::json shaped_json(const ShapedPlan& shaped) {
  return {
      {"rows", shaped.shape.rows}, {"length", shaped.shape.length}, {"plan", to_json(shaped.plan)}};
}

ShapedPlan shaped_from(const JsonObject& record) {
  const StepShape shape = {.rows = record.whole("rows"), .length = record.whole("length")};
  return {shape, plan_from_json(record.at("plan"))};
}

// All but the recipe.
PlanFile plans_from(const nlohmann::json& whole) {
  static const std::vector<std::string> kKeys = {"format", "recipe", "rows", "length",
                                                 "plan",   "others", "fit"};
  static const std::vector<std::string> kShapedKeys = {"rows", "length", "plan"};
  const JsonObject file(whole, "it", kKeys);
  file.at("recipe");
  PlanFile read = {{}, {shaped_from(file)}};
  if (file.has("others")) {
    for (const nlohmann::json& other : file.list("others")) {
      read.plans.push_back(shaped_from(JsonObject(other, "one of the others", kShapedKeys)));
    }
  }
  if (file.has("fit")) read.choices = selection_record_from(file.at("fit"));
  return read;
}

Recipe recipe_from(const nlohmann::json& record) {
  Recipe recipe = recipe_from_json(record);
  check(recipe);
  return recipe;
}

// The result of `read` for `record`. A fault begins with `where`.
template <class Read>
auto told_of(const std::string& where, Read&& read, const nlohmann::json& record) {
  try {
    return read(record);
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

}  // namespace

void save_plan(const std::string& path, const Recipe& recipe, std::span<const ShapedPlan> plans,
               const std::optional<SelectionRecord>& choices) {
  nlohmann::json file = {{"format", kFormat}, {"recipe", to_json(recipe)}};
  file.update(shaped_json(plans.front()));
  for (const ShapedPlan& other : plans.subspan(1)) file["others"].push_back(shaped_json(other));
  if (choices) file["fit"] = to_json(*choices);
  write_file(path, json_text(file) + "\n");
}

PlanFile load_plan(const std::string& path) {
  const nlohmann::json file = read_json(path, "a plan file");
  const bool named = file.is_object() && file.contains("format") && file["format"].is_string();
  const std::string format = named ? file["format"].get<std::string>() : "";
  user_check(format.starts_with(kFamily),
             "'{}' is not a plan file; name one that `thimble plan --save` wrote", path);
  user_check(format == kFormat,
             "'{}' is a plan of another version ({}, not {}); make it again with `thimble plan "
             "--save`",
             path, format, kFormat);
  PlanFile read = told_of("'" + path + "' is damaged", plans_from, file);
  read.recipe = told_of("'" + path + "'", recipe_from, file["recipe"]);
  return read;
}

}  // namespace thimble
