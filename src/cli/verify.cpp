// thimble verify: replays a saved plan byte range by byte range.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/options.h"
#include "cli/plan_file.h"
#include "execute/costs.h"
#include "plan/verify_plan.h"

namespace thimble {
namespace {

// Threads change kernels' scratch, so a file's own count is used, not this machine's.
int verify_file(const std::string& path, bool json) {
  const PlanFile file = load_plan(path);
  const auto backend = make_backend(file.recipe.device, file.recipe.threads);
  const TrainingGraph training =
      make_training_graph(file.recipe.model, file.recipe.optimizer, file.recipe.marks);
  const Costs costs = gather_costs(training.model.graph, *backend);
  const std::optional<std::string> fault = find_fault(training.model.graph, costs, file.plan);
  if (json) {
    print_json({{"sound", !fault.has_value()},
                {"fault", fault.value_or("")},
                {"model", file.recipe.model.name},
                {"arena_bytes", file.plan.arena.count}});
  }
  user_check(!fault.has_value(), "the plan in '{}' is unsound: {}", path, fault.value_or(""));
  if (!json) {
    fmt::print("{}: sound; {} steps of {} in {} bytes ({})\n", path, file.plan.steps.size(),
               file.recipe.model.name, file.plan.arena.count, to_string(file.plan.arena));
  }
  return kOk;
}

}  // namespace

Command add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Check a saved plan against its model, byte range by byte range");
  struct Flags {
    std::string path;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("plan", flags->path, "Plan file written by `thimble plan --save`")
      ->type_name("")
      ->required();
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  return {command, [flags] { return verify_file(flags->path, flags->json); }};
}

}  // namespace thimble
