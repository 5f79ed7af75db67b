#include "cli/plan_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "plan/plan_json.h"
#include "transform/codec_json.h"

namespace thimble {
namespace {

constexpr const char* kFormat = "thimble-plan-7";

nlohmann::json to_json(const Recipe& recipe) {
  const ModelOptions& m = recipe.model;
  const OptimizerSpec& o = recipe.optimizer;
  return {{"model", m.name},
          {"batch", m.batch},
          {"microbatch", recipe.microbatch},
          {"image", std::vector<int64_t>(m.image.dims().begin(), m.image.dims().end())},
          {"classes", m.classes},
          {"label_smoothing", m.label_smoothing},
          {"dropout", m.dropout},
          {"norm", name_of(m.norm)},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"length", m.length},
          {"steps_at_once", m.steps_at_once},
          {"optimizer", name_of(o)},
          {"fold", o.fold},
          {"momentum", o.momentum},
          {"weight_decay", o.weight_decay},
          {"state_bits", o.state_bits},
          {"clip_norm", o.clip_norm},
          {"clip_two_pass", o.clip_two_pass},
          {"density", recipe.sparsity.density},
          {"sparse", recipe.sparsity.weights},
          {"precision", name_of(m.storage)},
          {"master", m.master},
          {"rounding", name_of(o.rounding)},
          {"loss_scale", name_of(o.scaling)},
          {"device", recipe.device},
          {"threads", recipe.on.threads},
          {"tf32", recipe.on.tf32},
          {"streams", recipe.on.streams},
          {"planner", recipe.planner},
          {"keep", recipe.marks.keep},
          {"recompute", recipe.marks.recompute}};
}

Recipe recipe_from_json(const nlohmann::json& json) {
  Recipe recipe;
  ModelOptions& m = recipe.model;
  m.name = json.at("model").get<std::string>();
  m.batch = json.at("batch").get<int64_t>();
  recipe.microbatch = json.at("microbatch").get<int64_t>();
  m.image = Shape(json.at("image").get<std::vector<int64_t>>());
  m.classes = json.at("classes").get<int64_t>();
  m.label_smoothing = json.at("label_smoothing").get<double>();
  m.dropout = json.at("dropout").get<double>();
  m.norm = parse_norm(json.at("norm").get<std::string>());
  m.layers = json.at("layers").get<int64_t>();
  m.hidden = json.at("hidden").get<int64_t>();
  m.length = json.at("length").get<int64_t>();
  m.steps_at_once = json.at("steps_at_once").get<int64_t>();
  recipe.optimizer = parse_optimizer(json.at("optimizer").get<std::string>());
  recipe.optimizer.momentum = json.at("momentum").get<double>();
  recipe.optimizer.fold = json.at("fold").get<bool>();
  recipe.optimizer.weight_decay = json.at("weight_decay").get<double>();
  recipe.optimizer.state_bits = json.at("state_bits").get<int>();
  recipe.optimizer.clip_norm = json.at("clip_norm").get<double>();
  recipe.optimizer.clip_two_pass = json.at("clip_two_pass").get<bool>();
  recipe.codec = codec_from_json(json);
  recipe.sparsity.density = json.at("density").get<double>();
  recipe.sparsity.weights = json.at("sparse").get<std::vector<std::string>>();
  m.storage = parse_dtype(json.at("precision").get<std::string>());
  m.master = json.at("master").get<bool>();
  recipe.optimizer.rounding = parse_rounding(json.at("rounding").get<std::string>());
  recipe.optimizer.scaling = parse_loss_scaling(json.at("loss_scale").get<std::string>());
  recipe.device = json.at("device").get<std::string>();
  recipe.on = {json.at("threads").get<int>(), json.at("tf32").get<bool>(),
               json.at("streams").get<int>()};
  user_check(recipe.on.threads >= 0, "a plan cannot be for {} threads", recipe.on.threads);
  recipe.planner = json.at("planner").get<std::string>();
  recipe.marks.keep = json.at("keep").get<std::vector<std::string>>();
  recipe.marks.recompute = json.at("recompute").get<std::vector<std::string>>();
  return recipe;
}

}  // namespace

void save_plan(const std::string& path, const Recipe& recipe, const Plan& plan, const Plan* rest) {
  nlohmann::json file = {{"format", kFormat}, {"recipe", to_json(recipe)}, {"plan", to_json(plan)}};
  file["recipe"].update(to_json(recipe.codec));
  if (rest != nullptr) file["rest"] = to_json(*rest);
  write_file(path, json_text(file) + "\n");
}

PlanFile load_plan(const std::string& path) {
  const nlohmann::json json = read_json(path, "a plan file");
  user_check(json.is_object() && json.contains("format") && json["format"] == kFormat,
             "'{}' is not a plan file", path);
  try {
    PlanFile read = {recipe_from_json(json.at("recipe")), plan_from_json(json.at("plan")), {}};
    if (json.contains("rest")) read.rest = plan_from_json(json.at("rest"));
    return read;
  } catch (const nlohmann::json::exception& error) {
    user_error("'{}' is damaged: {}", path, error.what());
  }
}

}  // namespace thimble
