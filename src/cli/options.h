// What all subcommands share: flags, exit codes, how results reach the caller.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/sparsity_flags.h"
#include "data/dataset.h"
#include "pipeline.h"
#include "train/feeder.h"

namespace thimble {

inline constexpr int kOk = 0;
inline constexpr int kOurBug = 1;
inline constexpr int kCallersMistake = 2;
inline constexpr int kInfeasible = 3;
inline constexpr int kStoppedBySignal = 128;  // and the signal's number

// The flags that say what is planned or trained, as typed.
struct CommonFlags {
  std::string model;
  std::string data;  // empty: the model's usual
  std::string data_dir;
  std::string device = "cpu";
  DeviceOptions on;
  int64_t microbatch = 0;  // 0: the whole batch
  std::string allow = "approximate";
  bool fold = false;
  std::string norm = "batch";
  int64_t batch = 0;  // 0: the model's usual; so for the ones below
  int64_t classes = 0;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t length = 0;
  int64_t steps_at_once = 0;
  std::vector<int64_t> image;
  double dropout = 0;
  double label_smoothing = 0;
  std::string optimizer = "nesterov";
  double momentum = -1;  // negative: the optimizer's own
  double weight_decay = -1;
  int state_bits = 32;
  double clip_norm = 0;  // 0: not clipped
  bool clip_two_pass = false;
  SparsityFlags sparsity;
  std::string precision = "fp32";
  bool master = false;
  std::string rounding = "nearest";
  std::string loss_scale;  // empty: dynamic for fp16, else none
  LossScaling scaling;     // its settings, where it is dynamic
  std::string planner;     // empty: optimal with a budget, keep_all without
  std::vector<std::string> keep;
  std::vector<std::string> recompute;
  std::string codec = "none";
  std::vector<std::string> codec_only;
  std::string memory;
  std::string costs = "auto";  // see cli/costs_path.h
  uint64_t seed = 1;
  bool json = false;

  void resolve_precision(Recipe& recipe) const;
  // One model, how to plan it, and add_step_to.
  void add_to(CLI::App& command);
  // What the step is and where it runs: device, model, optimizer, data.
  void add_step_to(CLI::App& command);

 private:
  void add_precision_to(CLI::App& command);
};

// A check for flags: a finite number, not below zero.
std::string finite_not_negative(const std::string& typed);

// The recipe the flags ask for, and the data set where one was named (or is needed).
struct Resolved {
  Recipe recipe;
  std::unique_ptr<Dataset> dataset;  // null for sequence models, and for plans without --data
  bool sequences = false;
};
Resolved resolve(const CommonFlags& flags, bool needs_data);

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved, const FeedOptions& options);

// Plans, or reports why not in the form asked for and returns nothing (the caller exits 3).
std::optional<PlannedStepProgram> plan_or_explain(const Recipe& recipe, bool json);

// The facts of a planned step, as every command's JSON has them (docs/cli.md).
nlohmann::json summary_of(const PlannedStepProgram& planned);
// "batch 100 in microbatches of 30, the last of 10 (approximate)"; of a whole batch, "batch 100".
std::string batch_text(const PlannedStepProgram& planned);

// One JSON object on stdout.
void print_json(const nlohmann::json& object);

// Command lines with a recipe file (x.toml) in place of a model: its keys become flags, but for
// those that are typed as well.
std::vector<std::string> expand_recipe(std::vector<std::string> arguments);

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

}  // namespace thimble
