// Shared by all subcommands: flags, exit codes, how results reach the caller.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "recipe/settings.h"
#include "report/step_report.h"
#include "request/rank_agreement.h"
#include "select/choose.h"
#include "text/bleu.h"

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

  // --search-seconds, of commands that look for a plan.
  void add_search_to(CLI::App& command);

  // As typed; the model apart.
  Settings overrides() const;

 private:
  std::vector<std::pair<std::string, const CLI::Option*>> options_;
  std::vector<std::string> toggles_;
};

// An argument without a flag, which has to be there.
template <class T>
void add_argument(CLI::App& command, const char* name, T& value, const char* help) {
  command.add_option(name, value, help)->type_name("")->required();
}
// An option whose value help calls by its type.
template <class T>
CLI::Option* add_value(CLI::App& command, const char* flag, T& value, const char* type,
                       const char* help) {
  return command.add_option(flag, value, help)->type_name(type);
}
// A whole number, or several, between two.
template <class T>
CLI::Option* add_whole(CLI::App& command, const char* flag, T& value, int64_t least, int64_t most,
                       const char* help) {
  using Number = std::conditional_t<std::is_same_v<T, int64_t>, int64_t, int>;
  const CLI::Range range(static_cast<Number>(least), static_cast<Number>(most));
  return add_value(command, flag, value, "N", help)->check(range);
}
void add_json_flag(CLI::App& command, bool& json);

// Common to commands that use a trained model.
struct TrainedFlags {
  std::string run, weights, data_dir, device;
  int threads = -1;  // the run's
  bool json = false;

  // All but run and weights. `folder`: what --data-dir is.
  void add_to(CLI::App& command, const char* folder);
  // As the checkpoint has it, on the device and threads that were typed.
  Recipe recipe_of(const std::string& checkpoint) const;
};

// The request of the flags. Notes go to stderr, unless it is to be quiet. Of several ranks, as all of
// them have it.
Request requested(const std::string& model, const Settings& overrides, World* world = nullptr,
                  bool quiet = false);

// For flags that are numbers: NaN is between nothing.
CLI::Validator number_between(double least, double most);

// Plans, or reports why not in the form asked for and returns nothing (the caller exits 3).
std::optional<PlannedTraining> plan_or_explain(const Recipe& recipe, bool json);
// The same of what was asked for; what a budget chose is said first, on stderr. Of several ranks
// each plans for itself, to the same plan, and the first one speaks.
std::optional<PlannedTraining> plan_asked(Request& request, const std::shared_ptr<Machine>& machine,
                                          bool json, World* world = nullptr, bool quiet = false);
// Puts the budget in bytes into the request: says what `auto` comes to.
void settle_budget(Request& request, Machine& machine, World* world = nullptr, bool quiet = false);

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
Command add_finetune(CLI::App& app);
Command add_chat(CLI::App& app);
Command add_data_show(CLI::App& data);
Command add_plan(CLI::App& app);
Command add_profile(CLI::App& app);
Command add_calibrate(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_list(CLI::App& app);
Command add_data(CLI::App& app);
Command add_average(CLI::App& app);
Command add_translate(CLI::App& app);
Command add_sample(CLI::App& app);
Command add_evaluate(CLI::App& app);
Command add_predict(CLI::App& app);
Command add_export(CLI::App& app);
Command add_report(CLI::App& app);
Command add_compare(CLI::App& app);
// On the commands that `app` has by the time it runs.
Command add_help(CLI::App& app);
Command add_completion(CLI::App& app);
Command add_man(CLI::App& app);

}  // namespace thimble
