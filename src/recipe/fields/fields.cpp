// The list of everything that a run can be told.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "recipe/fields/field_groups.h"

namespace thimble {

void list_fields(Recipe& recipe, Fields& fields, const ReadByModel& reads,
                 const std::function<void(Fields&)>& list_own) {
  fields.add({"model",
              Field::Kind::value,
              "",
              [&recipe] {
                return recipe.model.name.empty() ? nlohmann::json()
                                                 : nlohmann::json(recipe.model.name);
              },
              [&recipe](const nlohmann::json& value) {
                const std::string name = read_text(value, "the model");
                if (!name.empty() && name == recipe.model.name) return;
                recipe.model.name = name;
                recipe.model.own.reset();
                split_name(recipe.model);
                if (!recipe.model.build) find_model_family(recipe.model.name);
              },
              {.help = "A name from `thimble list models`, or a recipe file (.toml)",
               .affects = kAll,
               .flag = false}});
  list_memory(recipe, fields);
  list_device(recipe, fields);
  list_ranks(recipe, fields);
  list_model(recipe, fields, reads, list_own);
  list_optimizer(recipe, fields);
  list_precision(recipe, fields);
  list_fine_tuning(recipe, fields);
  list_sparsity(recipe, fields);
  list_data(recipe, fields, reads);
  list_schedule(recipe, fields);
  list_tests(recipe, fields);
}

std::vector<Field> fields_of(Recipe& recipe) {
  Fields fields;
  ModelOptions& model = recipe.model;
  split_name(model);
  const bool known = !model.name.empty() && !model.build;
  ReadByModel reads;
  if (known) {
    const ModelFamily& family = find_model_family(model.name);
    reads = {family.intake == &kImageIntake, family.data};
  }
  list_fields(recipe, fields, reads, [&](Fields& list) {
    if (known || model.build) list_own_fields(model, list);
  });
  return std::move(fields).take();
}

std::string timed_text(Recipe recipe) {
  std::string text;
  for_each_field(recipe, [&](const Field& field) {
    if (!field.has_effect_on(affects::step_time)) return;
    const std::string value = field.about().timed.empty() ? field.text() : field.about().timed;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name(), value);
  });
  return text;
}

}  // namespace thimble
