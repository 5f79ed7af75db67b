#include "recipe/plan_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "plan/plan_json.h"
#include "recipe/settings.h"

namespace thimble {
namespace {

constexpr std::string_view kFormat = "thimble-plan-8";
constexpr std::string_view kFamily = "thimble-plan-";

}  // namespace

void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan, const Plan* rest) {
  nlohmann::json file = {{"format", kFormat}, {"recipe", to_json(recipe)}, {"plan", to_json(plan)}};
  if (rest != nullptr) file["rest"] = to_json(*rest);
  write_file(path, json_text(file) + "\n");
}

PlanFile load_plan(const std::string& path) {
  const nlohmann::json json = read_json(path, "a plan file");
  const bool named = json.is_object() && json.contains("format") && json["format"].is_string();
  const std::string format = named ? json["format"].get<std::string>() : "";
  user_check(format.starts_with(kFamily), "'{}' is not a plan file", path);
  user_check(format == kFormat,
             "'{}' is a plan of another version ({}, not {}); make it again with `thimble plan "
             "--save`",
             path, format, kFormat);
  try {
    PlanFile read = {
        recipe_from_json(json.at("recipe"), "'" + path + "'"), plan_from_json(json.at("plan")), {}};
    if (json.contains("rest")) read.rest = plan_from_json(json.at("rest"));
    return read;
  } catch (const nlohmann::json::exception& error) {
    user_error("'{}' is damaged: {}", path, error.what());
  }
}

}  // namespace thimble
