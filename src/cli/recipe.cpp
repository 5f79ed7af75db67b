// Recipe files: TOML whose keys are the long flags of the command (batch = 100, data = "cifar10").
#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/toml.h"
#include "cli/options.h"

namespace thimble {
namespace {

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string text_of(const toml::node& node, std::string_view key, const std::string& path) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<int64_t>()) return std::to_string(*whole);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  if (const auto* list = node.as_array()) {
    std::string joined;
    for (const toml::node& entry : *list) {
      if (!joined.empty()) joined += ',';
      joined += text_of(entry, key, path);
    }
    return joined;
  }
  user_error("recipe '{}': '{}' is neither text, number, list nor true/false", path, key);
}

}  // namespace

std::vector<std::string> expand_recipe(std::vector<std::string> arguments) {
  // The model stands right behind the subcommand; flags may stand before it.
  const auto at = std::find_if(arguments.begin(), arguments.end(),
                               [](const std::string& a) { return a.ends_with(".toml"); });
  if (at == arguments.end()) return arguments;
  const std::string path = *at;
  user_check(exists(path), "there is no recipe '{}'", path);
  const toml::table recipe = read_toml(path, "recipe");
  user_check(recipe.contains("model"), "recipe '{}' names no model", path);

  std::vector<std::string> flags = {text_of(*recipe.get("model"), "model", path)};
  const auto typed = [&](const std::string& flag) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == flag || argument.starts_with(flag + "=");
    });
  };
  for (const auto& [key, node] : recipe) {
    if (key.str() == "model" || typed(flag_of(key.str()))) continue;
    if (const auto on = node.value_exact<bool>()) {
      if (*on) flags.push_back(flag_of(key.str()));
      continue;
    }
    flags.push_back(flag_of(key.str()));
    flags.push_back(text_of(node, key.str(), path));
  }
  const auto rest = arguments.erase(at);
  // Behind the subcommand, in front of everything typed.
  const auto place = arguments.empty() ? rest : arguments.begin() + 1;
  arguments.insert(place, flags.begin(), flags.end());
  return arguments;
}

}  // namespace thimble
