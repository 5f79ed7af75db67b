// thimble calibrate: how long kernels take here, for plans that weigh time against memory.
#include "execute/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "comm/measure_link.h"
#include "execute/costs.h"
#include "execute/costs_path.h"
#include "train/time_step.h"
#include "transform/codec_ladder.h"

namespace thimble {
namespace {

struct CalibrateFlags {
  RecipeFlags recipe;
  std::string costs = kAutomaticCosts;
  std::vector<std::string> models;
  double seconds = 60;
};

// One op of the steps that were asked for; seconds are of one step of every model.
struct OpTime {
  int kernels = 0;
  double measured = 0;
  double modelled = 0;
};

// A step that was timed as a whole.
struct WholeStep {
  double seconds = 0;
  double of_kernels = 0;  // their times one by one, added up
};

struct Outcome {
  std::string machine;
  std::string path;
  int kernels = 0;                         // that the models run
  int measured = 0;                        // now
  double seconds = 0;                      // of measuring
  std::map<std::string_view, OpTime> ops;  // measured ones
  std::vector<WholeStep> steps;            // by model, where devices run kernels at the same time

  OpTime total() const {
    OpTime sum;
    for (const auto& [name, op] : ops) {
      sum.measured += op.measured;
      sum.modelled += op.modelled;
    }
    return sum;
  }
};

// The request, of every model.
std::vector<Recipe> recipes_of(const CalibrateFlags& flags) {
  std::vector<Recipe> recipes;
  for (const std::string& model : flags.models) {
    Request request = requested(model, flags.recipe.overrides());
    open_data(request, false);
    recipes.push_back(std::move(request.recipe));
  }
  return recipes;
}

// Every kernel of all models, once.
std::vector<KernelUse> kernels_of_models(std::vector<Recipe> recipes, Backend& backend) {
  std::vector<KernelUse> all;
  std::map<std::string, size_t> known;
  for (Recipe& recipe : recipes) {
    const std::vector<Codec> codecs = rungs_of(recipe.codec);
    for (const Codec codec : codecs) {
      recipe.codec = {codec, {}};
      for (const StepShape& shape : step_shapes(recipe)) {
        for (KernelUse& use : kernels_of(make_graph(recipe, shape).model.graph, backend)) {
          const auto [at, fresh] = known.try_emplace(use.key, all.size());
          if (fresh) {
            all.push_back(std::move(use));
          } else if (codec == codecs.front()) {  // the others differ from it in their codecs alone
            all[at->second].nodes += use.nodes;
          }
        }
      }
    }
  }
  return all;
}

// Times the recipe's step as a whole, beside the sum of its kernels' times in the recipe's file. Of
// a step that the device has no room for, that of least memory.
WholeStep time_step(Recipe recipe, CostTable& table) {
  const auto time = [&] {
    const auto planned = plan_training(recipe);
    if (const auto* const none = std::get_if<Infeasible>(&planned)) {
      user_error("a step of {} takes {} at least; give that as --memory", recipe.model.name,
                 to_string(none->min_bytes));
    }
    const auto& step = std::get<PlannedTraining>(planned);
    const Plan timed = priced_as_a_whole(step.full(), step.rest());
    const WholeStep whole = {seconds_of_step(step), timed.predicted_seconds};
    table[whole_step_key(recipe, step.backend())] = {whole.seconds, whole.of_kernels, today()};
    return whole;
  };
  try {
    return time();
  } catch (const NoRoom&) {
    recipe.memory = kLeastMemory;
    recipe.planner = budget_policy();
    return time();
  }
}

void print_table(const Outcome& outcome) {
  const OpTime total = outcome.total();
  print("{}: {} of {} kernels measured in {:.1f} s\n", outcome.machine, outcome.measured,
        outcome.kernels, outcome.seconds);
  print("  {:<32}{:>9}{:>14}{:>14}{:>8}\n", "a step", "kernels", "measured ms", "modelled ms",
        "ratio");
  std::vector<std::pair<std::string_view, OpTime>> slowest(outcome.ops.begin(), outcome.ops.end());
  std::ranges::stable_sort(slowest, std::greater(),
                           [](const auto& entry) { return entry.second.measured; });
  constexpr size_t kShown = 12;
  slowest.resize(std::min(kShown, slowest.size()));
  slowest.emplace_back("all", total);
  slowest.back().second.kernels = outcome.measured;
  for (const auto& [name, op] : slowest) {
    print("  {:<32}{:>9}{:>14.2f}{:>14.2f}{:>8.2f}\n", name, op.kernels, op.measured * 1e3,
          op.modelled * 1e3, op.measured / op.modelled);
  }
  for (const WholeStep& step : outcome.steps) {
    print("  a whole step takes {:.2f} ms, {:.2f} of its kernels one by one\n", step.seconds * 1e3,
          step.seconds / step.of_kernels);
  }
  print("  saved to {}; plan, train and profile use it from now on\n", outcome.path);
}

nlohmann::json to_json(const Outcome& outcome) {
  const OpTime total = outcome.total();
  nlohmann::json json = {
      {"machine", outcome.machine},          {"file", outcome.path},
      {"kernels", outcome.kernels},          {"measured_kernels", outcome.measured},
      {"seconds", outcome.seconds},          {"measured_ms", total.measured * 1e3},
      {"modelled_ms", total.modelled * 1e3}, {"ops", nlohmann::json::object()}};
  json["steps"] = nlohmann::json::array();
  for (const WholeStep& step : outcome.steps) {
    json["steps"].push_back(
        {{"step_ms", step.seconds * 1e3}, {"kernels_ms", step.of_kernels * 1e3}});
  }
  for (const auto& [name, op] : outcome.ops) {
    json["ops"][std::string(name)] = {{"kernels", op.kernels},
                                      {"measured_ms", op.measured * 1e3},
                                      {"modelled_ms", op.modelled * 1e3}};
  }
  return json;
}

// The link between ranks, for plans of as many. Their kernels are measured by a process alone, since others
// that wait take cores from it.
int measure_ranks(const CalibrateFlags& flags, World& world) {
  const Recipe recipe = requested(flags.models.front(), flags.recipe.overrides(), &world).recipe;
  const Interconnect link = measure_link(world.ranks());
  if (!world.first()) return kOk;
  const std::string path = costs_to_write(flags.costs, recipe.device);
  const auto backend = make_backend(recipe.device, recipe.on);
  const Interconnect usual = parse_interconnect("memory");
  add_costs(
      path, backend->machine(),
      {{link_key(kLinkLatency, world.size()), {link.latency, usual.latency, today()}},
       {link_key(kLinkByte, world.size()), {1 / link.bandwidth, 1 / usual.bandwidth, today()}}});
  if (flags.recipe.json) {
    print_json({{"machine", backend->machine()},
                {"file", path},
                {"ranks", world.size()},
                {"latency_seconds", link.latency},
                {"bytes_per_second", link.bandwidth}});
    return kOk;
  }
  print(
      "{}, {} ranks: {:.2f} us a message, {:.2f} GB/s\n  saved to {}; plans of as many ranks use "
      "it "
      "from now on\n",
      backend->machine(), world.size(), link.latency * 1e6, link.bandwidth / 1e9, path);
  return kOk;
}

int run(const CalibrateFlags& flags) {
  if (launched_ranks() > 1) {
    return run_among_ranks([&](World* world) { return measure_ranks(flags, *world); });
  }
  user_check(flags.seconds > 0 && flags.seconds < 1e9, "--seconds must be above 0");
  std::vector<Recipe> recipes = recipes_of(flags);
  const Recipe& first = recipes.front();
  const std::string path = costs_to_write(flags.costs, first.device);
  if (exists(path)) read_costs(path);  // refuse before measuring, not after
  const auto backend = make_backend(first.device, first.on);
  user_check(backend->runs(),
             "the {} device runs nothing that could be measured; calibrate with "
             "--device cpu",
             backend->name());
  const std::vector<KernelUse> kernels = kernels_of_models(recipes, *backend);

  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  const CostTable table = calibrate(
      kernels, *backend,
      {.seconds = flags.seconds, .date = today(), .progress = [&](double done, int measured) {
         line.show(done, fmt::format("{} of {} kernels measured", measured, kernels.size()));
       }});
  if (line.terminal()) line.print(fmt::format("{} kernels measured", table.size()));
  std::vector<std::string> whole_steps;
  for (Recipe& recipe : recipes) {
    recipe.costs = path;
    if (recipe.codec.automatic) recipe.codec = {};  // not chosen yet
    whole_steps.push_back(whole_step_key(recipe, *backend));
  }
  add_costs(path, backend->machine(), table, whole_steps);

  Outcome outcome;
  outcome.machine = backend->machine();
  outcome.path = path;
  outcome.kernels = static_cast<int>(kernels.size());
  outcome.measured = static_cast<int>(table.size());
  if (backend->has_device_memory()) {
    for (const Recipe& recipe : recipes) {
      CostTable step;
      outcome.steps.push_back(time_step(recipe, step));
      add_costs(path, backend->machine(), step);
    }
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const KernelUse& use : kernels) {
    if (use.nodes == 0) continue;  // another variant
    const KernelTime* time = use_fastest(use.signature, backend->kernel(use.signature), table);
    if (time == nullptr) continue;
    OpTime& op = outcome.ops[use.signature.op->name];
    ++op.kernels;
    op.measured += use.nodes * time->seconds;
    op.modelled += use.nodes * time->modelled;
  }
  if (flags.recipe.json) {
    print_json(to_json(outcome));
  } else {
    print_table(outcome);
  }
  return kOk;
}

}  // namespace

Command add_calibrate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Measure the kernels of models here, for better plans");
  auto flags = std::make_shared<CalibrateFlags>();
  add_argument(*command, "model", flags->models,
               "Names from `thimble list models`, or a recipe file");
  add_json_flag(*command, flags->recipe.json);
  add_value(*command, "--seconds", flags->seconds, "X", "Time to spend at most, roughly (60)");
  add_value(*command, "--costs", flags->costs, "FILE",
            "File to add the times to (auto: the one "
            "that plan, train and profile look into)");
  flags->recipe.add_to(*command, false, {"costs", "planner", "allow"});
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
