// A user's request: the recipe, its explicit settings, and the settings of this run alone. Every
// entry point makes one, from the same words.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "pipeline/pipeline.h"
#include "recipe/settings.h"

namespace thimble {

// Where a run is kept and what it writes, beside its numbers.
struct RunSettings {
  std::string out;
  std::string resume;  // latest, auto; empty: no
  std::string weights, tensorboard, export_initial, export_batches;
  bool overwrite = false, times = false, losses = false;
};

// One of them, as it is typed and as help speaks of it: either a text or a toggle.
struct RunSetting {
  std::string_view name, group, help;
  std::string_view placeholder;  // of a text; empty: it may be typed alone
  std::string RunSettings::*text = nullptr;
  bool RunSettings::*toggle = nullptr;
};
std::span<const RunSetting> all_run_settings();

struct Request {
  Recipe recipe;
  Settings explicit_settings;           // typed, or in the file that stands in place of the model
  Settings run_in_file;                 // what that file says of one run
  RunSettings run = {};                 // of `train`: run_settings() of both
  std::vector<std::string> notes = {};  // on what is said and has no effect
  double search_seconds = 10;           // of one usual core, to look for plans in
  std::chrono::steady_clock::time_point asked_at = std::chrono::steady_clock::now();
};

// The name of the setting that is a request's alone, whatever else it is told.
inline constexpr std::string_view kSearchSeconds = "search-seconds";
// Its value, taken out of the settings; none: it is not among them. UserError where it is no such time.
std::optional<double> take_search_seconds(Settings& settings);

// Says of the plan how long whoever asked has waited for it.
void say_what_it_took(const Request& request, PlannedTraining& planned);

// UserError for a setting that cannot have an effect; of what a file says without effect, a note.
Request read_request(const std::string& model, const Settings& overrides);

// The overrides, and, where there are none, the settings of the recipe file. UserError for an
// invalid value, and for a run to be resumed without a folder.
RunSettings run_settings(RunSettings overrides, const Settings& in_file);

// The data set where one was named (or is needed); the recipe adopts what it fixes. Null: neither.
std::unique_ptr<Dataset> open_data(Request& request, bool needed);

}  // namespace thimble
