// Doors into a recipe: what a command line, a file or a record says, by the names of fields.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace thimble {

// By name, '-' between words. A value is text, a number, true or false, or a list of them.
using Settings = std::map<std::string, nlohmann::json, std::less<>>;

// Applies the overrides in the order of the list, so that a choice brings along its usual settings,
// and other overrides win over them. UserError for an unknown name (with the nearest known one),
// for one that this model does not have (with the models that do), and for an invalid value.
void configure(Recipe& recipe, const Settings& overrides);

// A sentence for everything said that has no effect in this recipe.
struct UnusedSetting {
  std::string sentence;
  bool warn_if_unused = false;  // worth a warning, not a refusal
};
std::vector<UnusedSetting> unused_settings(Recipe& recipe, const Settings& overrides);

// The fewest settings that make this recipe of a usual one; configure() of them does.
Settings settings_of(const Recipe& recipe);

// A recipe file: TOML whose keys are names of fields ('_' or '-' between words).
Settings read_recipe_file(const std::string& path);
// The same of a text, which need not name a model: TOML, or JSON where it begins with '{'.
Settings parse_settings(const std::string& text);
std::string to_toml(const Settings& settings);

// All fields, as plan files and checkpoints record them.
nlohmann::json to_json(const Recipe& recipe);
// UserError, beginning with `where`, for a key too many, naming the nearest, or one too few, and
// for a value that is none.
Recipe recipe_from_json(const nlohmann::json& json);
Recipe recipe_from_json(const nlohmann::json& json, std::string_view where);
// The same of a record of how a run of this recipe began, but that it may lack keys: it may be of a
// version that had no such field. One of another model is let pass: whoever compares them says so.
void check_record(const nlohmann::json& json, const Recipe& recipe, std::string_view where);

// The fields that a resumed run must have in common with its beginning: those that affect numerics.
nlohmann::json bits_of(const nlohmann::json& recipe);
// The same of a recipe, less what is as usual and what the record of how the run began does not
// know: it was made by a version that had no such field, and did what is usual now.
nlohmann::json bits_of(const Recipe& recipe, const nlohmann::json& begun);

}  // namespace thimble
