#include "train/resume.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "recipe/settings.h"
#include "select/technique_selector.h"
#include "train/checkpoint.h"

namespace thimble {

bool goes_on(Resume resume, bool overwrite, const std::string& out) {
  const bool begun = latest_checkpoint(out).has_value();
  if (resume == Resume::or_start && !begun) {
    std::error_code unknown;
    user_check(
        !std::filesystem::is_symlink(out + "/latest", unknown),
        "'{0}/latest' points at no whole checkpoint; put back what it points at, or remove it "
        "to start anew",
        out);
  }
  user_check(!begun || resume != Resume::never || overwrite,
             "'{}' already holds a checkpoint; pass --resume to continue it, --overwrite to start "
             "again, or another --out",
             out);
  return resume == Resume::or_start ? begun : resume == Resume::latest;
}

void resume_codec(const std::string& out, Recipe& recipe) {
  const auto folder = latest_checkpoint(out);
  if (!recipe.codec.automatic || !folder) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  const nlohmann::json asked = to_json(recipe);
  const auto same = [&](const char* key) {
    return begun.contains(key) && begun[key] == asked[key];
  };
  if (!same("codec") || !same("codec_only") || !begun.contains("codec_chosen")) return;
  try {
    find_field(fields_of(recipe), "codec-chosen")->set(begun["codec_chosen"]);
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
}

void resume_choices(const std::string& out, Recipe& recipe, const Settings& said) {
  const auto folder = latest_checkpoint(out);
  if (!folder || !selects_techniques(recipe, said)) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  try {
    for_each_field(recipe, [&](const Field& field) {
      std::string key = field.name();
      std::ranges::replace(key, '-', '_');
      const std::string_view technique = field.about().technique;
      const bool chosen = !technique.empty() && technique != "recomputation";
      if (chosen && begun.contains(key) && !said.contains(field.name())) {
        field.set(begun[key]);
      }
    });
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
  recipe.fit = false;
}

}  // namespace thimble
