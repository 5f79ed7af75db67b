// thimble verify: replays a saved plan byte range by byte range.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/options.h"
#include "execute/costs.h"
#include "execute/costs_path.h"
#include "plan/verify/verify_plan.h"
#include "plan/verify/verify_shared_arena.h"
#include "recipe/plan_file.h"

namespace thimble {
namespace {

// Of the plan, of that of a smaller last microbatch, or of the two together.
std::optional<std::string> fault_of(const PlanFile& file) {
  // Threads change kernels' scratch, so a file's own count is used, not this machine's.
  const auto backend = make_backend(file.recipe.device, file.recipe.on);
  const std::vector<TrainingGraph> graphs = make_step_graphs(file.recipe);
  const int count = microbatches_of(file.recipe).count();
  if (file.plan.microbatches != count) {
    return fmt::format("the plan is for {} microbatches, not {}", file.plan.microbatches, count);
  }
  if (file.rest.has_value() != (graphs.size() > 1)) return "a plan too many, or too few";
  const Graph& full = graphs.front().model.graph;
  if (backend->remote()) {  // measured times may have chosen other kernels than a guess would
    Recipe measured = file.recipe;
    measured.costs = kAutomaticCosts;
    for (const TrainingGraph& graph : graphs) costs_of(measured, graph.model.graph, *backend);
  }
  const auto fault = find_fault(full, gather_costs(full, *backend), file.plan);
  if (fault || !file.rest) return fault;
  const Graph& rest = graphs.back().model.graph;
  const auto rest_fault = find_fault(rest, gather_costs(rest, *backend), *file.rest);
  if (rest_fault) return "the last microbatch: " + *rest_fault;
  if (file.rest->arena > file.plan.arena) return "the last microbatch needs more than the arena";
  return find_disagreement(full, file.plan, rest, *file.rest);
}

int verify_file(const std::string& path, bool json) {
  const PlanFile file = load_plan(path);
  const std::optional<std::string> fault = fault_of(file);
  if (json) {
    print_json({{"sound", !fault.has_value()},
                {"fault", fault.value_or("")},
                {"model", file.recipe.model.name},
                {"arena_bytes", file.plan.arena.count}});
  }
  user_check(!fault.has_value(), "the plan in '{}' is unsound: {}", path, fault.value_or(""));
  if (!json) {
    fmt::print("{}: sound; {} calls of {} in {} bytes ({})\n", path, file.plan.calls.size(),
               file.recipe.model.name, file.plan.arena.count, to_string(file.plan.arena));
  }
  return kOk;
}

}  // namespace

Command add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a saved plan against its model, byte range by byte range");
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
