// Recipes of the C functions: settings, checked as they come.
#include <algorithm>

#include "api/handles.h"
#include "request/request.h"

namespace thimble::api {
namespace {

// Whatever was said so far, and these, must be settings of one recipe.
void add(thimble_recipe& recipe, const Settings& more) {
  Settings overrides = recipe.overrides;
  for (const auto& [name, value] : more) overrides[name] = value;
  std::string model = recipe.model;
  if (const auto named = overrides.find("model"); named != overrides.end()) {
    user_check(model.empty() || named->second == model,
               "the recipe is for {}, and a setting says model = {}; say it once", model,
               named->second.dump());
    user_check(named->second.is_string(), "--model wants text, not {}", named->second.dump());
    model = named->second.get<std::string>();
  }
  const bool known = !model.empty() && !model.ends_with(".toml");
  Settings whole = overrides;
  take_search_seconds(whole);
  if (known) {
    whole["model"] = model;
    Recipe trial;
    configure(trial, whole);
  }
  recipe.overrides = std::move(overrides);
}

}  // namespace
}  // namespace thimble::api

using namespace thimble;
using namespace thimble::api;

thimble_code thimble_recipe_new(const char* model, thimble_recipe** recipe) {
  return guarded([&] {
    given(recipe, "recipe") = nullptr;
    auto made = std::make_unique<thimble_recipe>();
    if (model != nullptr) made->model = model;
    add(*made, {});
    *recipe = made.release();
  });
}

void thimble_recipe_free(thimble_recipe* recipe) { delete recipe; }

thimble_code thimble_recipe_set(thimble_recipe* recipe, const char* name, const char* value) {
  return guarded([&] {
    std::string spelt = &given(name, "name");
    std::ranges::replace(spelt, '_', '-');
    add(given(recipe, "recipe"), {{spelt, std::string(&given(value, "value"))}});
  });
}

thimble_code thimble_recipe_read(thimble_recipe* recipe, const char* text) {
  return guarded([&] { add(given(recipe, "recipe"), parse_settings(&given(text, "text"))); });
}

thimble_code thimble_recipe_resume(thimble_recipe* recipe, const char* out) {
  return guarded([&] { given(recipe, "recipe").goes_on_from = &given(out, "out"); });
}
