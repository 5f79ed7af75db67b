#include "recipe/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

using nlohmann::json;

std::vector<std::string> names_of(std::span<const Field> fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name());
  return names;
}

// "mlp, lstm and unet have it".
std::string having(const std::vector<std::string>& models) {
  if (models.size() == 1) return models[0] + " has it";
  const std::vector<std::string> first(models.begin(), models.end() - 1);
  return fmt::format("{} and {} have it", fmt::join(first, ", "), models.back());
}

// Why the recipe has no field of that name.
[[noreturn]] void refuse(const std::string& name, const Recipe& recipe,
                         std::span<const Field> fields) {
  for (const ListedField& listed : listed_fields()) {
    if (listed.field.name() != name || listed.models.empty()) continue;
    user_error("{} has no --{} ({}); leave --{} out", recipe.model.name, name,
               having(listed.models), name);
  }
  user_error("{}", no_such_setting("--" + name, names_of(fields)));
}

std::string file_key(std::string_view name) {
  std::string key(name);
  std::ranges::replace(key, '-', '_');
  return key;
}

// A record has keys of this recipe alone, each in one spelling.
void check_keys(const json& record, const Recipe& recipe, std::span<const Field> fields) {
  for (const auto& [key, value] : record.items()) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    if (find_field(fields, name) == nullptr) refuse(name, recipe, fields);
    user_check(key == file_key(name), "its recipe has a key '{}'; write '{}'", key, file_key(name));
  }
}

}  // namespace

void configure(Recipe& recipe, const Settings& overrides) {
  if (const auto model = overrides.find("model"); model != overrides.end()) {
    find_field(fields_of(recipe), "model")->set(model->second);
  }
  const std::vector<Field> fields = fields_of(recipe);
  for (const auto& [name, value] : overrides) {
    if (find_field(fields, name) == nullptr) refuse(name, recipe, fields);
  }
  for (const Field& field : fields) {
    const auto at = overrides.find(field.name());
    if (at != overrides.end() && field.name() != "model") field.set(at->second);
  }
}

std::vector<UnusedSetting> unused_settings(Recipe& recipe, const Settings& overrides) {
  std::vector<UnusedSetting> unused;
  for_each_field(recipe, [&](const Field& field) {
    const About& about = field.about();
    if (about.unused_reason.empty() || !overrides.contains(field.name())) return;
    unused.push_back({fmt::format("--{} says nothing {}; leave --{} out", field.name(),
                                  about.unused_reason, field.name()),
                      about.warn_if_unused});
  });
  return unused;
}

Settings settings_of(const Recipe& recipe) {
  Recipe wanted = recipe;
  Recipe made;
  made.model.build = recipe.model.build;
  Settings settings;
  const std::vector<Field> wanted_fields = fields_of(wanted);
  if (!wanted.model.name.empty()) {
    settings["model"] = wanted.model.name;
    configure(made, settings);
  }
  const std::vector<Field> fields = fields_of(made);
  internal_check(fields.size() == wanted_fields.size(), "two recipes of a model differ in fields");
  for (size_t i = 0; i < fields.size(); ++i) {
    const json value = wanted_fields[i].get();
    if (value == fields[i].get()) continue;
    settings[fields[i].name()] = value;
    fields[i].set(value);
  }
  return settings;
}

json to_json(const Recipe& recipe) {
  Recipe copy = recipe;
  json record = json::object();
  for_each_field(copy, [&](const Field& field) {
    if (field.about().recorded) record[file_key(field.name())] = field.get();
  });
  return record;
}

Recipe recipe_from_json(const json& record) {
  user_check(record.is_object(), "its recipe is no table");
  user_check(record.contains("model"), "its recipe names no model");
  Recipe recipe;
  find_field(fields_of(recipe), "model")->set(record["model"]);
  const std::vector<Field> fields = fields_of(recipe);
  check_keys(record, recipe, fields);
  for (const Field& field : fields) {
    if (!field.about().recorded) continue;
    const std::string key = file_key(field.name());
    user_check(record.contains(key), "its recipe does not say '{}'", key);
    if (key != "model") field.set(record[key]);
  }
  return recipe;
}

Recipe recipe_from_json(const json& record, std::string_view where) {
  try {
    return recipe_from_json(record);
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

void check_record(const json& record, const Recipe& recipe, std::string_view where) {
  Recipe read = recipe;
  if (record.value("model", json()) != json(recipe.model.name)) return;
  const std::vector<Field> fields = fields_of(read);
  try {
    check_keys(record, recipe, fields);
    for (const Field& field : fields) {
      const std::string key = file_key(field.name());
      if (record.contains(key)) field.set(record[key]);
    }
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

json bits_of(const json& record) {
  json bits = json::object();
  for (const ListedField& listed : listed_fields()) {
    const std::string key = file_key(listed.field.name());
    if (listed.field.has_effect_on(affects::numerics) && record.contains(key))
      bits[key] = record[key];
  }
  return bits;
}

json bits_of(const Recipe& recipe, const json& begun) {
  json bits = bits_of(to_json(recipe));
  json chosen = json::object();
  for (const auto& [name, value] : settings_of(recipe)) chosen[file_key(name)] = value;
  std::erase_if(bits.get_ref<json::object_t&>(), [&](const auto& field) {
    return !begun.contains(field.first) && !chosen.contains(field.first);
  });
  return bits;
}

}  // namespace thimble
