// What all subcommands share: flags, exit codes, how results reach the caller.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "pipeline/pipeline.h"
#include "recipe/settings.h"
#include "text/bleu.h"
#include "train/feeder.h"

namespace thimble {

inline constexpr int kOk = 0;
inline constexpr int kOurBug = 1;
inline constexpr int kCallersMistake = 2;
inline constexpr int kInfeasible = 3;
inline constexpr int kStoppedBySignal = 128;  // and the signal's number

// The flags of recipes, made from their list.
class RecipeFlags {
 public:
  std::string model;  // or a recipe file
  bool json = false;

  // One model and --json.
  void add_model_to(CLI::App& command);
  // A flag for every field but those in `without`; those of training on request.
  void add_to(CLI::App& command, bool training, const std::vector<std::string>& without = {});

  // As typed; the model apart.
  Settings typed() const;

 private:
  std::vector<std::pair<std::string, const CLI::Option*>> options_;
  std::vector<std::string> toggles_;
};

// What the flags ask for, on top of the recipe file that may stand in place of the model. UserError
// for a flag that cannot have an effect; of what a file says without effect, a note on stderr.
struct Asked {
  Recipe recipe;
  Settings said;
  Settings run;  // what a recipe file says of one run and not of its numbers: out, resume, ...
};
Asked read_recipe(const std::string& model, const Settings& typed);

// The recipe, and the data set where one was named (or is needed).
struct Resolved {
  Recipe recipe;
  Settings said;  // as in Asked
  Settings run;
  std::unique_ptr<Dataset> dataset;  // null: a plan without --data
};
Resolved resolve(const Asked& asked, bool needs_data);
inline Resolved resolve(const RecipeFlags& flags, bool needs_data) {
  return resolve(read_recipe(flags.model, flags.typed()), needs_data);
}

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved);

// Plans, or reports why not in the form asked for and returns nothing (the caller exits 3).
std::optional<PlannedTraining> plan_or_explain(const Recipe& recipe, bool json);

// The facts of a planned step, as every command's JSON has them (docs/cli.md).
nlohmann::json summary_of(const PlannedTraining& planned);
// "batch 100 in microbatches of 30, the last of 10 (approximate)"; of a whole batch, "batch 100".
std::string batch_text(const PlannedTraining& planned);

// One JSON object on stdout.
void print_json(const nlohmann::json& object);

// The weights of a run's last checkpoints. UserError where there are fewer.
std::vector<std::string> last_weights(const std::string& run, int64_t count);

// BLEU with its signature, on stdout.
void print_bleu(const Bleu& bleu, const BleuOptions& options, size_t references, bool json);

// Subcommands, one file each. Each adds itself and stores what to run when chosen.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};
Command add_train(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_profile(CLI::App& app);
Command add_calibrate(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_list(CLI::App& app);
Command add_data(CLI::App& app);
Command add_average(CLI::App& app);
Command add_translate(CLI::App& app);
Command add_sample(CLI::App& app);
Command add_export(CLI::App& app);

}  // namespace thimble
