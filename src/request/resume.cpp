#include "request/resume.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "comm/small_collectives.h"
#include "recipe/settings.h"
#include "select/technique_selector.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

std::string default_out(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", std::localtime(&now));
  std::string name = model;
  for (char& c : name) {
    if (c == ':' || c == '[' || c == ']' || c == ',') c = '-';
  }
  return fmt::format("runs/{}-{}", name, stamp);
}

// Sets fields as the checkpoint has them.
template <class Set>
void set_from(const std::string& checkpoint, const Set& set) {
  try {
    set();
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", checkpoint, error.what());
  }
}

void resume_codec(const std::string& checkpoint, const nlohmann::json& begun, Recipe& recipe) {
  if (!recipe.codec.automatic) return;
  const nlohmann::json asked = to_json(recipe);
  const auto same = [&](const char* key) {
    return begun.contains(key) && begun[key] == asked[key];
  };
  if (!same("codec") || !same("codec_only") || !begun.contains("codec_chosen")) return;
  set_from(checkpoint,
           [&] { find_field(fields_of(recipe), "codec-chosen")->set(begun["codec_chosen"]); });
}

void resume_choices(const std::string& checkpoint, const nlohmann::json& begun, Request& request) {
  Recipe& recipe = request.recipe;
  const Settings& explicit_settings = request.explicit_settings;
  if (!selects_techniques(recipe, explicit_settings)) return;
  set_from(checkpoint, [&] {
    for_each_field(recipe, [&](const Field& field) {
      std::string key = field.name();
      std::ranges::replace(key, '-', '_');
      const std::string_view technique = field.about().technique;
      const bool chosen = !technique.empty() && technique != "recomputation";
      if (chosen && begun.contains(key) && !explicit_settings.contains(field.name()))
        field.set(begun[key]);
    });
  });
  recipe.fit = false;
}

}  // namespace

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

RunPlace take_place(const RunSettings& run, const Recipe& recipe, World* world) {
  RunPlace place;
  if (world == nullptr || world->first()) {
    place.folder.emplace(run.out.empty() ? RunFolder::unique(default_out(recipe.model.name))
                                         : RunFolder(run.out));
    place.out = place.folder->path();
    const Resume resume = run.resume.empty()     ? Resume::never
                          : run.resume == "auto" ? Resume::or_start
                                                 : Resume::latest;
    place.resume = goes_on(resume, run.overwrite, place.out);
  }
  if (world != nullptr) {
    place.out = text_of_first(world->ranks(), place.out);
    place.resume = !text_of_first(world->ranks(), place.resume ? "yes" : "").empty();
  }
  return place;
}

void resume_request(Request& request, const std::string& out) {
  const auto folder = latest_checkpoint(out);
  if (!folder) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  resume_codec(*folder, begun, request.recipe);
  resume_choices(*folder, begun, request);
  check(request.recipe);
}

std::optional<std::string> resume_microbatch(Request& request, const std::string& out) {
  Recipe& recipe = request.recipe;
  const auto folder = latest_checkpoint(out);
  if (!folder || request.explicit_settings.contains("microbatch") || recipe.tokens > 0) return {};
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  const nlohmann::json rows = begun.value("microbatch", nlohmann::json());
  if (!rows.is_number_integer() || begun.value("ranks", nlohmann::json(1)) == recipe.ranks.count) {
    return {};
  }
  const auto kept = rows.get<int64_t>();
  const Microbatches now = microbatches_of(recipe);
  const bool shared = recipe.ranks.count == 1 || (kept > 0 && now.batch % (kept * now.ranks) == 0);
  if (shared && kept >= 0 && kept <= now.batch) {
    recipe.microbatch = kept;
    return {};
  }
  return fmt::format(
      "the run was in microbatches of {} rows, which {} ranks cannot share; it goes "
      "on in {}, the same sums rounded otherwise",
      kept, recipe.ranks.count, now.rows);
}

}  // namespace thimble
