// thimble plan: what a training step will need, before anything runs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "pipeline/check_plan_file.h"
#include "pipeline/step_size.h"
#include "report/explain/explanation.h"
#include "report/memory_terms.h"
#include "report/plan_report.h"
#include "report/plan_svg.h"
#include "select/largest_that_fit.h"
#include "select/max_batch.h"
#include "survey/ranks.h"
#include "survey/simulate.h"
#include "survey/sweep.h"
#include "survey/ways.h"

namespace thimble {
namespace {

constexpr std::string_view kOfFolder = ":FOLDER";  // a family whose models are folders
constexpr double kTableSearch = 1;                 // seconds of one core, for each of its plans

struct PlanFlags {
  RecipeFlags recipe;
  std::string save;
  std::string picture;
  bool verbose = false;
  bool sweep = false;
  bool explain = false;
  std::optional<std::string> largest;
  std::string table;  // lengths, joined by commas; auto: usual ones; empty: no table
  bool simulate = false;
  double jitter = ClusterModel().jitter;
  double slowest = ClusterModel().slowest;
};

// Which kernel runs what, how often.
void print_kernels(const PlannedTraining& planned) {
  const Graph& graph = planned.graph();
  std::map<std::pair<std::string_view, std::string>, int> count;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    ++count[{signature.op->name, planned.backend().kernel(signature).name}];
  }
  print("  kernels\n");
  for (const auto& [key, times] : count) {
    print("  {:<32}{:<36}{:>6}x\n", key.first, key.second, times);
  }
}

nlohmann::json ranks_json(const RanksSpec& ranks, const Communication& with) {
  return {{"ranks", ranks.count},           {"shard", name_of(ranks.shard)},
          {"interconnect", with.link.name}, {"communication_ms", with.seconds * 1e3},
          {"sent_bytes", with.sent.count},  {"collectives", with.collectives}};
}

// Every sharding on 1, 2, 4, ... ranks.
int print_ranks(const Recipe& recipe, const std::shared_ptr<Machine>& machine, bool json) {
  const std::vector<RanksPoint> points = sweep_ranks(recipe, machine);
  nlohmann::json list = nlohmann::json::array();
  if (!json) {
    print("{}, a rank's bytes and what a step takes\n", recipe.model.name);
    print("  {:>6} {:<10}{:>16}{:>16}{:>16}{:>12}{:>12}{:>14}\n", "ranks", "shard", "arena",
          "weights", "state", "step ms", "with others", "sent");
  }
  for (const RanksPoint& p : points) {
    if (json) {
      list.push_back(ranks_json(p.ranks, p.communication));
      list.back().update({{"arena_bytes", p.arena.count},
                          {"weight_bytes", p.weights.count},
                          {"state_bytes", p.state.count},
                          {"predicted_step_ms", p.seconds * 1e3}});
      continue;
    }
    print("  {:>6} {:<10}{:>16}{:>16}{:>16}{:>12.2f}{:>12.2f}{:>14}\n", p.ranks.count,
          name_of(p.ranks.shard), p.arena.count, p.weights.count, p.state.count, p.seconds * 1e3,
          p.communication.seconds * 1e3, to_string(p.communication.sent));
  }
  if (json) print_json({{"model", recipe.model.name}, {"device", recipe.device}, {"points", list}});
  return kOk;
}

// Communication of each of several ranks, and the predicted time of a step of all of them.
nlohmann::json describe_ranks(const PlannedTraining& planned, const PlanFlags& flags) {
  const RanksSpec& ranks = planned.recipe.ranks;
  const Communication with =
      communication_of(planned.recipe, planned.graph(), planned.plan(), *planned.machine);
  nlohmann::json json = ranks_json(ranks, with);
  json["weight_bytes"] = persistent_bytes(planned.graph(), Role::weight).count;
  json["state_bytes"] = persistent_bytes(planned.graph(), Role::optimizer_state).count;
  if (!flags.recipe.json) {
    print(
        "  each of {} ranks, shard {}: keeps {} bytes of weights and {} of state; sends {} in {} "
        "collectives a step, {:.2f} ms over {}\n",
        ranks.count, name_of(ranks.shard), json["weight_bytes"].get<int64_t>(),
        json["state_bytes"].get<int64_t>(), to_string(with.sent), with.collectives,
        with.seconds * 1e3, with.link.name);
  }
  if (!flags.simulate) return json;
  const SimulatedStep step =
      simulate(planned.graph(), planned.full().costs, planned.plan(),
               {.ranks = ranks.count, .jitter = flags.jitter, .slowest = flags.slowest});
  json["simulated"] = {{"compute_ms", step.compute * 1e3},
                       {"in_turn_ms", step.in_turn * 1e3},
                       {"overlapped_ms", step.overlapped * 1e3},
                       {"jitter", flags.jitter},
                       {"slowest", flags.slowest}};
  if (!flags.recipe.json) {
    print(
        "  simulated: {:.2f} ms of kernels; a step in {:.2f} ms where ranks wait for every "
        "collective ({:.0f}% of it kernels), in {:.2f} ms where they go on meanwhile ({:.0f}%)\n",
        step.compute * 1e3, step.in_turn * 1e3, 100 * step.compute / step.in_turn,
        step.overlapped * 1e3, 100 * step.compute / step.overlapped);
  }
  return json;
}

int print_sweep(const Recipe& recipe, Machine& machine, bool json, const std::string& picture) {
  const Frontier frontier = sweep(recipe, machine);
  const std::string title =
      fmt::format("{}: memory against predicted time ({})", frontier.model, frontier.costs);
  if (!picture.empty()) write_file(picture, frontier_svg(title, frontier.points));
  if (!json) {
    print("{}\n{}\n{}", title, frontier_table(frontier.points), frontier_plot(frontier.points));
    return kOk;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const FrontierPoint& p : frontier.points) {
    list.push_back({{"planner", p.policy},
                    {"budget_bytes", p.budget.count},
                    {"arena_bytes", p.arena.count},
                    {"predicted_step_ms", p.milliseconds},
                    {"extra_flops_ratio", p.extra_flops_ratio}});
  }
  print_json({{"model", frontier.model},
              {"device", recipe.device},
              {"costs", frontier.costs},
              {"points", list}});
  return kOk;
}

// The largest that fits, put into what was asked for.
void take_largest(const std::string& what, Request& request,
                  const std::shared_ptr<Machine>& machine) {
  user_check(request.recipe.memory && *request.recipe.memory != kLeastMemory,
             "--largest says nothing without a budget; give --memory BYTES, or --memory auto");
  settle_budget(request, *machine);
  const MaxBatch largest = find_max_batch(request.recipe, request.explicit_settings, what,
                                          *request.recipe.memory, machine);
  say("largest {}: {} (--{} {}){}\n", what, largest.value, largest.field, largest.value,
      largest.by_memory ? "" : "; memory would do for more, and there is none");
  request.recipe = largest.recipe;
  request.explicit_settings = largest.explicit_settings;
}

// Of a folder's model in its budget; 0: not even one.
struct LargestOfFolder {
  int64_t length = 0, batch = 0;  // with the batch as typed, and with the length
};

int64_t length_of(const PlannedTraining& planned) { return planned.full().model.options.length; }

// `planned`: as typed; null: it does not fit.
LargestOfFolder largest_of(const Request& request, const PlannedTraining* planned,
                           const std::shared_ptr<Machine>& machine) {
  LargestThatFit search(request.recipe, request.explicit_settings, machine);
  const auto largest = [&](const char* field, int64_t fits) {
    const auto found = search.find(field, fits);
    return found ? found->value : 0;
  };
  const bool whole = planned != nullptr && planned->microbatches.count() == 1;
  return {.length = largest("length", planned == nullptr ? 0 : length_of(*planned)),
          .batch = largest("batch", whole ? planned->microbatches.batch : 0)};
}

std::string text_of(const LargestOfFolder& largest) {
  return fmt::format("lengths up to {} fit, and batches up to {} rows", largest.length,
                     largest.batch);
}

nlohmann::json json_of(const LargestOfFolder& largest) {
  return {{"longest_length", largest.length}, {"largest_batch", largest.batch}};
}

std::vector<int64_t> lengths_of(const std::string& text, const Recipe& recipe) {
  if (text == "auto") return usual_lengths(recipe);
  std::vector<int64_t> lengths;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    int64_t length = 0;
    const bool fine = CLI::detail::lexical_cast(word, length) && length >= 1;
    user_check(fine, "--table=LENGTHS are whole numbers joined by commas, not '{}'", text);
    lengths.push_back(length);
  }
  return lengths;
}

int print_table(const PlanFlags& flags, Request& request, const std::shared_ptr<Machine>& machine) {
  user_check(flags.save.empty() && flags.picture.empty() && !flags.explain && !flags.largest,
             "--table makes many plans and shows none of them: leave out --save, --svg, --explain "
             "and --largest");
  settle_budget(request, *machine);
  SearchLimits limits = limits_within(std::min(request.search_seconds, kTableSearch));
  const WayTable table = compare_ways(request.recipe, request.explicit_settings,
                                      lengths_of(flags.table, request.recipe), machine, limits);
  if (flags.recipe.json) {
    print_json(way_json(table));
  } else {
    print("{}", way_text(table));
  }
  return kOk;
}

int run(const PlanFlags& flags) {
  Request request = requested(flags.recipe.model, flags.recipe.overrides());
  open_data(request, false);
  user_check(!flags.sweep || (flags.save.empty() && !flags.explain),
             "--sweep makes many plans and shows none of them: leave out --save and --explain");
  user_check(!flags.sweep || !request.recipe.codec.automatic,
             "--sweep compares planners of one graph, and --codec auto chooses between graphs: "
             "name a codec");
  user_check(!flags.simulate || request.recipe.ranks.several(),
             "--simulate plays a step of several ranks; say how many with --ranks");
  user_check(!flags.sweep || !flags.simulate, "--sweep plans and --simulate plays; choose one");
  const auto machine = open_machine(request.recipe, request.explicit_settings);
  if (!flags.table.empty()) return print_table(flags, request, machine);
  if (flags.largest) take_largest(*flags.largest, request, machine);
  if (flags.sweep && request.recipe.ranks.several()) {
    return print_ranks(request.recipe, machine, flags.recipe.json);
  }
  if (flags.sweep) {
    return print_sweep(request.recipe, *machine, flags.recipe.json, flags.picture);
  }
  const auto planned = plan_asked(request, machine, flags.recipe.json);
  const bool asks = request.recipe.memory > kLeastMemory && !flags.largest &&
                    request.recipe.tokens == 0 &&
                    find_model_family(request.recipe.model.name).pattern.ends_with(kOfFolder);
  std::optional<LargestOfFolder> largest;
  if (asks) largest = largest_of(request, planned ? &*planned : nullptr, machine);
  if (!planned) {
    if (largest && !flags.recipe.json) say("  {}\n", text_of(*largest));
    return kInfeasible;
  }
  const Model& model = planned->full().model;
  if (!flags.save.empty()) save_plan(flags.save, *planned);
  if (!flags.picture.empty()) write_file(flags.picture, plan_svg(model.graph, planned->plan()));
  Explanation explanation;
  if (flags.explain) explanation = explain(*planned);
  if (flags.recipe.json) {
    nlohmann::json summary = summary_of(*planned);
    if (planned->recipe.ranks.several()) summary.update(describe_ranks(*planned, flags));
    if (flags.explain) summary["explanation"] = to_json(explanation);
    if (largest) summary.update(json_of(*largest));
    print_json(summary);
    return kOk;
  }
  const Plan plan = priced_as_a_whole(*planned);
  print("{}, {}, on {}: {} parameters, {} nodes, planner {}, packer {}\n", model.options.name,
        batch_text(*planned), planned->backend().name(), parameter_count(model.graph),
        model.graph.nodes.size(), plan.policy, plan.packer);
  print("{}", memory_table(plan));
  if (!planned->backend().has_device_memory()) {
    print("  process: {} bytes at most ({})\n", process_bytes(*planned).count,
          to_string(process_bytes(*planned)));
  }
  print("  {} calls, {:.2f} GFLOP, about {:.1f} ms ({}); planned and verified in {:.2f} s\n",
        plan.calls.size(), plan.flops / 1e9, plan.predicted_seconds * 1e3,
        planned->full().costs.source, planned->plan_seconds);
  if (const int64_t tokens = tokens_of_step(*planned); tokens > 0) {
    print("  {} tokens a step, about {:.0f} tokens a second\n", tokens,
          static_cast<double>(tokens) / plan.predicted_seconds);
  }
  if (planned->recipe.ranks.several()) describe_ranks(*planned, flags);
  if (flags.explain) print("{}", explanation_text(explanation));
  if (largest) print("  {}\n", text_of(*largest));
  if (flags.verbose) print_kernels(*planned);
  for (const std::string& path : {flags.save, flags.picture}) {
    if (!path.empty()) print("  saved to {}\n", path);
  }
  return kOk;
}

}  // namespace

Command add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Exact bytes of a training step; nothing runs");
  auto flags = std::make_shared<PlanFlags>();
  flags->recipe.add_model_to(*command);
  flags->recipe.add_to(*command, false);
  flags->recipe.add_search_to(*command);
  command->option_defaults()->group("Plan");
  add_value(*command, "--save", flags->save, "FILE", "Write the plan, for `thimble verify`");
  command->add_flag(
      "--explain", flags->explain,
      "What fills the arena, what a MiB more or less costs, and why each tensor is kept, "
      "compressed or recomputed");
  add_value(*command, "--largest", flags->largest, "WHAT",
            "The largest batch, length, layers or width that fits --memory");
  command->add_flag("--sweep", flags->sweep,
                    "Memory against time, for every planner; with --ranks, for every sharding");
  command->add_flag("--table{auto}", flags->table,
                    "Bytes and times of all weights, LoRA and LoRA beside few bits, at several "
                    "lengths; --table=512,4096: at these");
  command->add_flag("--simulate", flags->simulate,
                    "With --ranks: plays a step of all of them, stragglers and overlap included");
  add_value(*command, "--jitter", flags->jitter, "X",
            "Simulated: how much longer kernels take at random, as a share (0.03)")
      ->check(number_between(0, 10));
  add_value(*command, "--slowest", flags->slowest, "X",
            "Simulated: what one rank's kernels take, of the others' (1)")
      ->check(number_between(1, 1000));
  add_value(*command, "--svg", flags->picture, "FILE", "Draw the arena over time, or the sweep");
  command->add_flag("-v,--verbose", flags->verbose, "Also which kernel runs each op");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
