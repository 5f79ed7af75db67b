#include "train/request.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/buckets.h"

namespace thimble {
namespace {

// Flags of `train` that say where a run is kept and what it writes: a recipe file may have them.
constexpr std::array<std::string_view, 9> kOfOneRun = {
    "out",   "resume", "overwrite",  "weights", "export-initial", "export-batches",
    "times", "losses", "tensorboard"};

Settings settings_in_file(const std::string& path, Settings& run) {
  Settings settings = read_recipe_file(path);
  for (const std::string_view name : kOfOneRun) {
    if (auto found = settings.extract(std::string(name))) run.insert(std::move(found));
  }
  try {
    Recipe alone;
    configure(alone, settings);
  } catch (const UserError& error) {
    user_error("recipe '{}': {}", path, error.what());
  }
  return settings;
}

// What the data fix, nobody else can say.
void check_said_of_data(const Asked& asked, const ModelOptions& adopted, std::string_view data) {
  const auto same = [&](const char* field, bool equal, const std::string& is) {
    user_check(equal || !asked.said.contains(field),
               "--{} says nothing with --data {}, where it is {}", field, data, is);
  };
  const Shape& image = adopted.image;
  if (image.rank() == 3) {
    same("image", asked.recipe.model.image == image,
         fmt::format("{},{},{}", image[0], image[1], image[2]));
  }
  same("classes", asked.recipe.model.classes == adopted.classes,
       fmt::format("{}", adopted.classes));
}

// Of batches by tokens, where none were said.
void choose_lengths_for(const Dataset& data, Recipe& recipe) {
  const bool variable = std::ranges::any_of(data.info().fields, &RecordField::variable);
  user_check(recipe.tokens == 0 || variable,
             "--tokens is for records of lengths of their own, and those of '{}' are all alike; "
             "choose --batch",
             data.info().name);
  constexpr int64_t kMostLengths = 13;
  if (recipe.tokens > 0 && recipe.lengths.empty()) {
    recipe.lengths = choose_lengths(data, kMostLengths);
  }
}

}  // namespace

Asked ask(const std::string& model, const Settings& typed) {
  Asked asked;
  asked.said = typed;
  if (model.ends_with(".toml")) {
    asked.said.merge(settings_in_file(model, asked.run));  // what is typed stays
  } else {
    asked.said["model"] = model;
  }
  asked.said.try_emplace("costs", "auto");
  configure(asked.recipe, asked.said);
  for (const IdleSetting& idle : idle_settings(asked.recipe, typed)) {
    user_check(idle.shrugged_at, "{}", idle.sentence);
    asked.notes.push_back(idle.sentence);
  }
  Settings of_file = asked.said;
  for (const auto& [name, value] : typed) of_file.erase(name);
  for (const IdleSetting& idle : idle_settings(asked.recipe, of_file)) {
    asked.notes.push_back(idle.sentence);
  }
  check(asked.recipe);
  return asked;
}

Resolved resolve(const Asked& asked, bool needs_data) {
  Resolved resolved;
  resolved.recipe = asked.recipe;
  resolved.said = asked.said;
  resolved.run = asked.run;
  ModelOptions& model = resolved.recipe.model;
  DataSpec& data = resolved.recipe.data;
  if (!needs_data && data.name.empty()) return resolved;
  const ModelFamily& family = find_model_family(model.name);
  ModelOptions usual = model;
  complete_model(usual);
  // An image size that was asked for is made, where no data set was.
  const bool made = model.image.rank() > 0 && family.data == "digits";
  if (data.name.empty()) data.name = made ? "generated" : family.data;
  resolved.dataset = open_dataset(data.name, {.folder = data.folder,
                                              .wanted = family.intake->fields(usual),
                                              .seed = resolved.recipe.seed,
                                              .settings = data.settings});
  const DatasetInfo& info = resolved.dataset->info();
  family.intake->adopt(info.fields, model);
  check_said_of_data(asked, model, info.name);
  choose_lengths_for(*resolved.dataset, resolved.recipe);
  usual = model;
  complete_model(usual);
  check_match(model.name, family.intake->fields(usual), info.name, info.fields);
  return resolved;
}

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved) {
  return std::make_unique<Feeder>(*resolved.dataset, feed_options(resolved.recipe));
}

}  // namespace thimble
