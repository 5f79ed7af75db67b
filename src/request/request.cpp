#include "request/request.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "data/guess.h"
#include "data/order/buckets.h"

namespace thimble {
namespace {

constexpr std::string_view kKept = "Checkpoints and tests", kForOthers = "For other programs";
constexpr RunSetting kRunSettings[] = {
    {"out", kKept, "Folder for checkpoints (runs/MODEL-TIME)", "FOLDER", &RunSettings::out},
    {"resume", kKept,
     "Continue from the latest checkpoint in --out; `--resume auto`: or start, if none", "",
     &RunSettings::resume},
    {"overwrite", kKept, "Start again where --out has a checkpoint", "", nullptr,
     &RunSettings::overwrite},
    {"weights", kKept, "Start from this safetensors file", "FILE", &RunSettings::weights},
    {"tensorboard", kForOthers, "Write losses and metrics as TensorBoard's event files", "FOLDER",
     &RunSettings::tensorboard},
    {"export-initial", kForOthers, "Write the first weights as safetensors", "FILE",
     &RunSettings::export_initial},
    {"export-batches", kForOthers, "Write every batch as safetensors", "FOLDER",
     &RunSettings::export_batches},
    {"times", kForOthers, "With --json: the time of every step", "", nullptr, &RunSettings::times},
    {"losses", kForOthers, "With --json: the loss of every step", "", nullptr,
     &RunSettings::losses}};

Settings settings_in_file(const std::string& path, Settings& run) {
  Settings settings = read_recipe_file(path);
  for (const RunSetting& setting : kRunSettings) {
    if (auto found = settings.extract(std::string(setting.name))) run.insert(std::move(found));
  }
  try {
    Recipe alone;
    configure(alone, settings);
  } catch (const UserError& error) {
    user_error("recipe '{}': {}", path, error.what());
  }
  return settings;
}

// A folder in place of a data set's name: which set it is, and that it is so taken.
void guess_folder(Settings& settings, std::vector<std::string>& notes) {
  const auto named = settings.find("data");
  if (named == settings.end() || !named->second.is_string()) return;
  const std::string folder = named->second.get<std::string>();
  std::error_code ignored;
  if (find_dataset(folder, "") != nullptr || !std::filesystem::is_directory(folder, ignored))
    return;
  const auto other = settings.find("data-dir");
  user_check(other == settings.end() || other->second == nlohmann::json(folder),
             "--data names the folder '{}', and --data-dir another; leave one out", folder);
  const GuessedData guessed = guess_data(folder);
  settings["data"] = guessed.set;
  settings["data-dir"] = folder;
  notes.push_back(fmt::format("'{}' holds {}: read as --data {} --data-dir {}", folder,
                              guessed.since, guessed.set, folder));
}

// Settings that the data fix cannot be overridden.
void check_said_of_data(const Request& request, const ModelOptions& before, std::string_view data) {
  const ModelOptions& adopted = request.recipe.model;
  const auto same = [&](const char* field, bool equal, const std::string& is) {
    user_check(equal || !request.explicit_settings.contains(field),
               "--{} says nothing with --data {}, where it is {}", field, data, is);
  };
  const Shape& image = adopted.image;
  if (image.rank() == 3) {
    same("image", before.image == image, fmt::format("{},{},{}", image[0], image[1], image[2]));
  }
  same("classes", before.classes == adopted.classes, fmt::format("{}", adopted.classes));
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

// Documents in a row see each other in a model that does not read where each begins.
void check_apart(const std::string& model, std::span<const RecordField> read,
                 const DatasetInfo& info) {
  user_check(find_field(info.fields, "begins") == nullptr || find_field(read, "begins") != nullptr,
             "rows of '{}' hold several documents, which {} would not keep apart; choose --packing "
             "off",
             info.name, model);
}

// A record that no batch has room for would end the run when its turn comes.
void check_room(std::span<const RecordField> read, const DatasetInfo& info, const Recipe& recipe) {
  for (const RecordField& field : read) {
    const RecordField* const offered = find_field(info.fields, field.name);
    if (offered == nullptr || !offered->variable || recipe.tokens > 0) continue;
    const int64_t room = recipe.lengths.empty() ? field.shape[0] : std::ranges::max(recipe.lengths);
    user_check(
        offered->shape[0] <= room,
        "records of '{}' have up to {} entries of '{}', and a row has {}; choose --length {}",
        info.name, offered->shape[0], field.name, room, offered->shape[0]);
  }
}

}  // namespace

std::optional<double> take_search_seconds(Settings& settings) {
  constexpr double kMost = 600;
  const auto seconds = settings.extract(std::string(kSearchSeconds));
  if (!seconds) return std::nullopt;
  return read_real(seconds.mapped(), {.least = 0, .most = kMost}, "--search-seconds");
}

Request read_request(const std::string& model, const Settings& asked) {
  Request request;
  Settings overrides = asked;
  request.search_seconds = take_search_seconds(overrides).value_or(request.search_seconds);
  Settings& explicit_settings = request.explicit_settings = overrides;
  if (model.ends_with(".toml")) {
    explicit_settings.merge(settings_in_file(model, request.run_in_file));  // what is typed stays
  } else {
    explicit_settings["model"] = model;
  }
  explicit_settings.try_emplace("costs", "auto");
  guess_folder(explicit_settings, request.notes);
  configure(request.recipe, explicit_settings);
  for (const UnusedSetting& unused : unused_settings(request.recipe, overrides)) {
    user_check(unused.warn_if_unused, "{}", unused.sentence);
    request.notes.push_back(unused.sentence);
  }
  Settings of_file = explicit_settings;
  for (const auto& [name, value] : overrides) of_file.erase(name);
  for (const UnusedSetting& unused : unused_settings(request.recipe, of_file)) {
    request.notes.push_back(unused.sentence);
  }
  check(request.recipe);
  return request;
}

std::span<const RunSetting> all_run_settings() { return kRunSettings; }

RunSettings run_settings(RunSettings overrides, const Settings& in_file) {
  for (const RunSetting& setting : kRunSettings) {
    const auto at = in_file.find(setting.name);
    if (at == in_file.end()) continue;
    const nlohmann::json& value = at->second;
    if (setting.toggle != nullptr) {
      user_check(value.is_boolean(), "--{} is true or false, not {}", setting.name, value.dump());
      overrides.*setting.toggle = overrides.*setting.toggle || value.get<bool>();
    } else if (std::string& text = overrides.*setting.text; text.empty()) {
      const bool alone = value == true && setting.placeholder.empty();  // resume = true
      user_check(value.is_string() || value == false || alone, "--{} wants text, not {}",
                 setting.name, value.dump());
      if (alone) text = "latest";
      if (value.is_string()) text = value.get<std::string>();
    }
  }
  user_check(overrides.resume.empty() || overrides.resume == "latest" || overrides.resume == "auto",
             "--resume is latest or auto, not '{}'", overrides.resume);
  user_check(overrides.resume.empty() || !overrides.out.empty(),
             "--resume continues a run that has a folder; say which with --out");
  return overrides;
}

std::unique_ptr<Dataset> open_data(Request& request, bool needed) {
  Recipe& recipe = request.recipe;
  ModelOptions& model = recipe.model;
  if (!needed && recipe.data.name.empty()) return nullptr;
  const ModelFamily& family = find_model_family(model.name);
  const ModelOptions before = model;
  ModelOptions usual = model;
  complete_model(usual);
  // An image size that was asked for is made, where no data set was.
  const bool made = model.image.rank() > 0 && family.data == "digits";
  if (recipe.data.name.empty()) recipe.data.name = made ? "generated" : family.data;
  auto dataset = open_dataset(recipe.data.name, {.folder = recipe.data.folder,
                                                 .wanted = family.intake->fields(usual),
                                                 .seed = recipe.seed,
                                                 .settings = recipe.data.settings});
  const DatasetInfo& info = dataset->info();
  family.intake->adopt(info.fields, model);
  check_said_of_data(request, before, info.name);
  choose_lengths_for(*dataset, recipe);
  usual = model;
  complete_model(usual);
  const std::vector<RecordField> read = family.intake->fields(usual);
  check_match(model.name, read, info.name, info.fields);
  check_apart(model.name, read, info);
  check_room(read, info, recipe);
  check(recipe);
  return dataset;
}

void say_what_it_took(const Request& request, PlannedTraining& planned) {
  const auto waited = std::chrono::steady_clock::now() - request.asked_at;
  planned.plan_seconds = std::chrono::duration<double>(waited).count();
  if (planned.report) planned.report->seconds = planned.plan_seconds;
}

}  // namespace thimble
