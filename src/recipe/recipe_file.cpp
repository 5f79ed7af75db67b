// Recipes as TOML files (batch = 100, data = "cifar10").
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/nearest_path.h"
#include "base/io/toml.h"
#include "recipe/settings.h"

namespace thimble {
namespace {

using nlohmann::json;

json value_of(const toml::node& node, std::string_view key, const std::string& path) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<int64_t>()) return *whole;
  if (const auto real = node.value_exact<double>()) return *real;
  if (const auto on = node.value_exact<bool>()) return *on;
  if (const auto* list = node.as_array()) {
    json values = json::array();
    for (const toml::node& entry : *list) values.push_back(value_of(entry, key, path));
    return values;
  }
  if (node.is_table()) return json::object();
  user_error("recipe '{}': '{}' is neither text, number, list nor true/false", path, key);
}

// As TOML spells it. Numbers that are whole stay so.
std::string spelt(const json& value) {
  if (value.is_array()) {
    std::string list;
    for (const json& entry : value) list += (list.empty() ? "" : ", ") + spelt(entry);
    return "[" + list + "]";
  }
  const bool beyond = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  // JSON's text is TOML's, but for numbers beyond its own: fields read text as well.
  return beyond ? fmt::format("\"{}\"", value.dump()) : value.dump();
}

// '_' or '-' between words.
std::string field_name(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

void add(Settings& settings, std::string_view key, const json& value, const std::string& path) {
  user_check(!value.is_object(),
             "recipe '{}': '{}' is a table, and settings stand in none; write them at the top",
             path, key);
  const bool fresh = settings.try_emplace(field_name(key), value).second;
  user_check(fresh, "recipe '{}' says '{}' twice, with '_' and with '-'", path, key);
}

Settings settings_in(const toml::table& table, const std::string& path) {
  Settings settings;
  for (const auto& [key, node] : table) {
    add(settings, key.str(), value_of(node, key.str(), path), path);
  }
  return settings;
}

}  // namespace

Settings read_recipe_file(const std::string& path) {
  user_check(exists(path), "there is no recipe '{}'{}", path, nearest_path_clause(path));
  const toml::table recipe = read_toml(path, "recipe");
  user_check(recipe.contains("model"), "recipe '{}' names no model", path);
  return settings_in(recipe, path);
}

Settings parse_settings(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{') {
    return settings_in(parse_toml(text, "given as text", "recipe"), "given as text");
  }
  const json record = parse_json(text);
  Settings settings;
  for (const auto& [key, value] : record.items()) add(settings, key, value, "given as text");
  return settings;
}

std::string to_toml(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    std::string key = name;
    std::ranges::replace(key, '-', '_');
    if (!value.is_null() && !value.is_object()) {
      text += fmt::format("{} = {}\n", key, spelt(value));
    }
  }
  return text;
}

}  // namespace thimble
