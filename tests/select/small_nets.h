// Small steps that tests of fit choose for, planned on the null device: times are a model's, so that
// they are the same everywhere.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "select/choose.h"
#include "support/sanitized.h"

namespace thimble {

struct SmallNet {
  std::string name;
  Settings explicit_settings;
};

inline const std::vector<SmallNet>& small_nets() {
  static const std::vector<SmallNet> nets = {
      {"mlp", {{"model", "mlp"}, {"layers", 3}, {"hidden", 48}, {"batch", 12}}},
      {"wrn", {{"model", "wrn-10-1"}, {"image", {8, 8, 3}}, {"batch", kSanitized ? 2 : 12}}},
      {"wrn_group",
       {{"model", "wrn-10-1"},
        {"image", {8, 8, 3}},
        {"batch", kSanitized ? 2 : 24},
        {"norm", "group"},
        {"optimizer", "sgd"}}},
      {"lstm", {{"model", "lstm"}, {"length", kSanitized ? 2 : 12}, {"hidden", 24}, {"batch", 16}}},
      {"gpt",
       {{"model", "gpt"},
        {"layers", kSanitized ? 1 : 2},
        {"width", 24},
        {"heads", 2},
        {"length", kSanitized ? 4 : 16},
        {"batch", 4},
        {"optimizer", "adam"}}}};
  return nets;
}

inline Recipe recipe_of(const Settings& explicit_settings) {
  Recipe recipe;
  configure(recipe, explicit_settings);
  recipe.device = "null";
  return recipe;
}

inline Settings with_tier(Settings explicit_settings, std::string_view tier) {
  explicit_settings["allow"] = std::string(tier);
  return explicit_settings;
}

// From what keeping everything takes down to the least, evenly in the logarithm.
inline std::vector<Bytes> budgets_between(Bytes most, Bytes least, int count) {
  std::vector<Bytes> budgets;
  const double ratio = static_cast<double>(least.count) / static_cast<double>(most.count);
  for (int i = 0; i < count; ++i) {
    const double scale = std::pow(ratio, static_cast<double>(i) / (count - 1));
    const Bytes budget(static_cast<int64_t>(static_cast<double>(most.count) * scale));
    budgets.push_back(std::max(budget, least));
  }
  return budgets;
}

}  // namespace thimble
