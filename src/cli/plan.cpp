// thimble plan: what a training step will need, before anything runs.
#include <fmt/format.h>

#include <map>

#include "base/file.h"
#include "cli/options.h"
#include "cli/plan_file.h"
#include "report/plan_report.h"
#include "report/plan_svg.h"

namespace thimble {
namespace {

struct Flags {
  CommonFlags common;
  std::string save;
  std::string picture;
  bool verbose = false;
};

// Which kernel runs what, how often.
void print_kernels(const PlannedStepProgram& planned) {
  const Graph& graph = planned.training->model.graph;
  std::map<std::pair<std::string_view, std::string>, int> count;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    ++count[{signature.op->name, planned.backend->kernel(signature).name}];
  }
  fmt::print("  kernels\n");
  for (const auto& [key, times] : count) {
    fmt::print("  {:<32}{:<36}{:>6}x\n", key.first, key.second, times);
  }
}

int run(const Flags& flags) {
  const Resolved resolved = resolve(flags.common, false);
  const auto planned = plan_or_explain(resolved.recipe, flags.common.json);
  if (!planned) return kInfeasible;
  const Model& model = planned->training->model;
  if (!flags.save.empty()) {
    Recipe recipe = resolved.recipe;
    recipe.model = model.options;
    save_plan(flags.save, recipe, planned->plan);
  }
  if (!flags.picture.empty()) write_file(flags.picture, plan_svg(model.graph, planned->plan));
  if (flags.common.json) {
    print_json(plan_summary(planned->backend->name(), model.options.batch, model.graph,
                            planned->plan, planned->plan_seconds));
    return kOk;
  }
  const Plan& plan = planned->plan;
  fmt::print("{}, batch {}, on {}: {} parameters, {} nodes, planner {}, packer {}\n",
             model.options.name, model.options.batch, planned->backend->name(),
             parameter_count(model.graph), model.graph.nodes.size(), plan.policy, plan.packer);
  fmt::print("{}", memory_table(plan));
  fmt::print("  {} steps, {:.2f} GFLOP, about {:.1f} ms ({}); planned and verified in {:.2f} s\n",
             plan.steps.size(), plan.flops / 1e9, plan.predicted_seconds * 1e3,
             planned->costs.source, planned->plan_seconds);
  if (flags.verbose) print_kernels(*planned);
  for (const std::string& path : {flags.save, flags.picture}) {
    if (!path.empty()) fmt::print("  saved to {}\n", path);
  }
  return kOk;
}

}  // namespace

Command add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Exact bytes of a training step; nothing runs");
  auto flags = std::make_shared<Flags>();
  flags->common.add_to(*command);
  command->option_defaults()->group("Plan");
  command->add_option("--save", flags->save, "Write the plan, for `thimble verify`")
      ->type_name("FILE");
  command->add_option("--svg", flags->picture, "Draw the arena over time")->type_name("FILE");
  command->add_flag("-v,--verbose", flags->verbose, "Also which kernel runs each op");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
