#include "cli/plan_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "plan/plan_json.h"

namespace thimble {
namespace {

constexpr const char* kFormat = "thimble-plan-1";

nlohmann::json to_json(const Recipe& recipe) {
  const ModelOptions& m = recipe.model;
  const OptimizerSpec& o = recipe.optimizer;
  return {{"model", m.name},
          {"batch", m.batch},
          {"image", std::vector<int64_t>(m.image.dims().begin(), m.image.dims().end())},
          {"classes", m.classes},
          {"label_smoothing", m.label_smoothing},
          {"dropout", m.dropout},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"length", m.length},
          {"optimizer", name_of(o)},
          {"momentum", o.momentum},
          {"weight_decay", o.weight_decay},
          {"device", recipe.device},
          {"threads", recipe.threads},
          {"planner", recipe.planner},
          {"keep", recipe.marks.keep},
          {"recompute", recipe.marks.recompute}};
}

Recipe recipe_from_json(const nlohmann::json& json) {
  Recipe recipe;
  ModelOptions& m = recipe.model;
  m.name = json.at("model").get<std::string>();
  m.batch = json.at("batch").get<int64_t>();
  m.image = Shape(json.at("image").get<std::vector<int64_t>>());
  m.classes = json.at("classes").get<int64_t>();
  m.label_smoothing = json.at("label_smoothing").get<double>();
  m.dropout = json.at("dropout").get<double>();
  m.layers = json.at("layers").get<int64_t>();
  m.hidden = json.at("hidden").get<int64_t>();
  m.length = json.at("length").get<int64_t>();
  recipe.optimizer = parse_optimizer(json.at("optimizer").get<std::string>());
  recipe.optimizer.momentum = json.at("momentum").get<double>();
  recipe.optimizer.weight_decay = json.at("weight_decay").get<double>();
  recipe.device = json.at("device").get<std::string>();
  recipe.threads = json.at("threads").get<int>();
  user_check(recipe.threads >= 0, "a plan cannot be for {} threads", recipe.threads);
  recipe.planner = json.at("planner").get<std::string>();
  recipe.marks.keep = json.at("keep").get<std::vector<std::string>>();
  recipe.marks.recompute = json.at("recompute").get<std::vector<std::string>>();
  return recipe;
}

}  // namespace

void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan) {
  const nlohmann::json file = {
      {"format", kFormat}, {"recipe", to_json(recipe)}, {"plan", to_json(plan)}};
  write_file(path, file.dump() + "\n");
}

PlanFile load_plan(const std::string& path) {
  const ReadFile file(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  user_check(json.is_object() && json.contains("format") && json["format"] == kFormat,
             "'{}' is not a plan file", path);
  try {
    return {recipe_from_json(json.at("recipe")), plan_from_json(json.at("plan"))};
  } catch (const nlohmann::json::exception& error) {
    user_error("'{}' is damaged: {}", path, error.what());
  }
}

}  // namespace thimble
