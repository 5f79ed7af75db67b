// thimble train: plan, then train inside the plan.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/host/stop_signals.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "data/fingerprint.h"
#include "report/plan_report.h"
#include "report/run_report.h"
#include "request/resume.h"
#include "train/early_stopping.h"
#include "train/trainer.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

struct TrainFlags {
  RecipeFlags recipe;
  RunSettings run;
  bool quiet = false;
  std::optional<int64_t> patience;  // tests; none: nobody looks for the best
};

constexpr const char* kStoppingRank =
    "\nthimble: this rank was told to stop; a checkpoint is saved after this step where all ranks "
    "still are there; else go on from the last one with --resume\n";
constexpr const char* kStopping =
    "\nthimble: stopping; a checkpoint is saved after this step (once more: stops at once)\n";

// Every batch (or microbatch) as a file, so that another program can train on the same data.
void export_batch(const std::string& folder, MicrobatchId which, const TrainingStep::Part& part) {
  std::vector<TensorToWrite> tensors;
  Program& program = part.program();
  for (const Feed& feed : part.model().feeds) {
    const Value& v = program.graph()[feed.value];
    tensors.push_back({v.name, v.type, program.bytes_of(feed.value), {}});
  }
  const std::string number =
      part.plan().microbatches > 1 ? fmt::format("-{:04}", which.number) : "";
  write_safetensors(fmt::format("{}/batch-{:06}{}.safetensors", folder, which.step, number),
                    tensors);
}

nlohmann::json result_json(const PlannedTraining& planned, const TrainResult& result,
                           const RunSettings& run, const std::optional<EarlyStopping>& best) {
  nlohmann::json json = summary_of(planned, result);
  if (best) {
    json["best"] = {
        {"step", best->step()}, {"test_loss", best->loss()}, {"weights", best->weights()}};
  }
  if (run.losses) json["losses"] = result.losses;
  if (run.times) {
    for (const double seconds : result.seconds) json["times_ms"].push_back(seconds * 1000);
  }
  return json;
}

// "no batch of 12x38 or 5x102 yet", the longest of many.
std::string not_met_text(const std::vector<StepShape>& shapes) {
  constexpr size_t kShown = 3;
  std::string text = "no batch yet of";
  for (size_t i = 0; i < std::min(kShown, shapes.size()); ++i) {
    text += fmt::format("{} {}x{}", i > 0 ? "," : "", shapes[i].rows, shapes[i].length);
  }
  if (shapes.size() > kShown) text += fmt::format(", or {} others", shapes.size() - kShown);
  return text;
}

void print_result(const PlannedTraining& planned, const TrainResult& result,
                  const std::optional<EarlyStopping>& best) {
  const std::string tested =
      result.test_count == 0
          ? "not tested"
          : fmt::format("test {} on {} records", spelt_out(result.test), result.test_count);
  print("\n{}: {}, train loss {:.4f}, {:.1f} ms a step", planned.full().model.options.name, tested,
        result.train.loss, result.step_ms);
  if (result.tokens_per_second > 0) print(", {:.0f} tokens a second", result.tokens_per_second);
  const size_t ranks = result.arena_of_ranks.size();
  if (ranks > 1) {
    print(", {:.1f}% of it with the other ranks", 100 * result.communication);
  }
  print("\n\n{}", memory_table(planned.plan()));
  const auto row = [](std::string_view what, Bytes size, std::string_view note) {
    print("  {:<24}{:>14}{:>12}   {}\n", what, size.count, to_string(size), note);
  };
  for (size_t k = 0; k < ranks; ++k) {
    const Bytes measured = result.arena_of_ranks[k];
    const bool larger_ones = measured < planned.plan().arena && !result.not_met.empty();
    row(ranks == 1 ? "arena, measured" : fmt::format("arena, rank {}", k), measured,
        measured == planned.plan().arena ? "as planned"
        : larger_ones                    ? not_met_text(result.not_met)
                                         : "NOT as planned");
  }
  if (result.beside_arena) {
    row("on the card beside it", *result.beside_arena,
        "CUDA's context, libraries' code, other programs");
  } else {
    row("process beside the arena", process_beside(planned.plan().arena), "peak");
  }
  print("\ncheckpoint {}\nweights sha256 {}\n", result.checkpoint, result.weights_sha256);
  if (best && best->step() > 0) {
    print("best test loss {:.4f} at step {}{}: {}\n", best->loss(), best->step(),
          result.stopped ? fmt::format("; ended early, at step {}", result.steps) : "",
          best->weights());
  }
}

// As it was asked for, on as many ranks as were started.
Request request_of(const TrainFlags& flags, World* world) {
  Request request = requested(flags.recipe.model, flags.recipe.overrides(), world, flags.quiet);
  user_check(world != nullptr || !request.recipe.ranks.several(),
             "{0} ranks are started by mpirun: `mpirun -np {0} thimble train ...`; `thimble plan "
             "--ranks {0}` says what each of them will need",
             request.recipe.ranks.count);
  return request;
}

RunSettings run_of(const TrainFlags& flags, const Request& request) {
  RunSettings run = run_settings(flags.run, request.run_in_file);
  for (const auto& [flag, on] : {std::pair("--losses", run.losses), {"--times", run.times}}) {
    user_check(!on || flags.recipe.json, "{} says nothing without --json", flag);
  }
  return run;
}

// The checkpoint's part of the request, if the run is resumed.
void go_on(Request& request, const RunPlace& place, bool quiet) {
  const bool speaks = launched_rank() == 0 && !quiet;
  if (place.resume) {
    resume_request(request, place.out);
    const auto note = resume_microbatch(request, place.out);
    if (note && speaks) say("thimble: note: {}\n", *note);
  } else if (request.run.resume == "auto" && speaks) {
    say("there is no checkpoint in '{}' yet: a new run begins\n", place.out);
  }
}

TrainOptions options_of(const RunSettings& run, const RunPlace& place,
                        const nlohmann::json& fingerprint, const StopSignals& signals,
                        World* world) {
  TrainOptions options = {.out = place.out,
                          .resume = place.resume,
                          .weights = run.weights,
                          .fingerprint = fingerprint,
                          .stop = [&signals] { return signals.received() != 0; },
                          .tensorboard = run.tensorboard};
  if (!run.export_batches.empty()) {
    ensure_directory(run.export_batches);
    options.on_microbatch = [folder = run.export_batches](MicrobatchId which,
                                                          const TrainingStep::Part& part) {
      export_batch(folder, which, part);
    };
  }
  if (world != nullptr) {
    options.saved = [world](const std::string& folder) {
      world->failure_detector().set_remedy(
          fmt::format("the last checkpoint is {}: go on with --resume", folder));
    };
  }
  return options;
}

void announce(const PlannedTraining& planned, const Trainer& trainer, World* world) {
  const Model& model = planned.full().model;
  say("{}: {} parameters, {}, {} steps; arena {} bytes ({}){}\n", model.options.name,
      parameter_count(model.graph), batch_text(planned), trainer.steps(),
      planned.plan().arena.count, to_string(planned.plan().arena),
      world == nullptr ? ""
                       : fmt::format(" on each of {} ranks, over {}", world->size(),
                                     planned.backend().ranks()->name()));
}

// The best weights of tests stay beside the checkpoints of the run: of adapters, they alone.
void keep_best(EarlyStopping& best, const Progress& tested, Trainer& trainer, bool first,
               bool adapters) {
  if (best.is_best(tested)) {
    adapters ? trainer.export_adapters(best.weights()) : trainer.export_weights(best.weights());
  }
  if (first) best.save();
}

int train(const TrainFlags& flags, World* world) {
  const bool first = world == nullptr || world->first(), json = flags.recipe.json;
  Request request = request_of(flags, world);
  const auto data = open_data(request, true);  // the recipe adopts what the data fix
  request.run = run_of(flags, request);
  user_check(!flags.patience || request.recipe.evaluate,
             "--patience counts tests, and --no-eval leaves them out; leave one of both out");
  const RunPlace place = take_place(request.run, request.recipe, world);
  go_on(request, place, flags.quiet);
  const nlohmann::json fingerprint = fingerprint_of(data->info());
  if (world != nullptr) check_run_identity(*world, request, fingerprint);
  const Feeder feeder(*data, feed_options(request.recipe));
  const auto machine = open_machine(request.recipe, request.explicit_settings,
                                    world == nullptr ? ProfileWhen::always : ProfileWhen::never);
  auto planned = plan_asked(request, machine, json, world, flags.quiet);
  if (!planned) return kInfeasible;
  if (world != nullptr) planned->backend().join(world->ranks());

  const StopSignals signals(world == nullptr ? kStopping : kStoppingRank);
  std::optional<EarlyStopping> best;
  // Several ranks have parts of adapters, which only whole weights are gathered from.
  const bool adapters = world == nullptr && request.recipe.tuning.adapters.enabled();
  if (flags.patience) best.emplace(place.out, *flags.patience, place.resume, adapters);
  TrainOptions options = options_of(request.run, place, fingerprint, signals, world);
  options.stop = [&] { return signals.received() != 0 || (best && best->over()); };
  Trainer trainer(*planned, feeder, std::move(options));
  if (!json && !flags.quiet && first) announce(*planned, trainer, world);
  if (!trainer.weights_note().empty() && first && !flags.quiet) {
    say("{}: {}\n", request.run.weights, trainer.weights_note());
  }
  if (!request.run.export_initial.empty()) trainer.export_weights(request.run.export_initial);
  ProgressDisplay display;
  const TrainResult result = trainer.run([&](const Progress& p) {
    if (first && !flags.quiet) display.show(p);
    if (best && p.evaluated) keep_best(*best, p, trainer, first, adapters);
  });

  const bool early = result.stopped && signals.received() == 0 && best && best->over();
  if (json && first) print_json(result_json(*planned, result, request.run, best));
  if (!json && first && (early || !result.stopped)) print_result(*planned, result, best);
  if (early || !result.stopped) return kOk;
  const int signal = signals.received() != 0 ? signals.received() : SIGTERM;
  if (first) {
    say("thimble: stopped by {} after step {} of {}; checkpoint {}; to go on, repeat the command "
        "with --resume --out {}\n",
        name_of_signal(signal), result.steps, trainer.steps(), result.checkpoint, place.out);
  }
  return kStoppedBySignal + signal;
}

}  // namespace

Command add_train(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "Plan a training step, then train inside the plan");
  auto flags = std::make_shared<TrainFlags>();
  flags->recipe.add_model_to(*command);
  flags->recipe.add_to(*command, true);
  flags->recipe.add_search_to(*command);
  command->option_defaults()->group("For other programs");
  command->add_flag("--quiet", flags->quiet, "No lines while it trains: the result, and mistakes");
  command->option_defaults()->group("Checkpoints and tests");
  add_whole(
      *command, "--patience", flags->patience, 0, 1'000'000,
      "End after N tests without a better loss, and keep the best weights (0: only keep them)");
  RunSettings& run = flags->run;
  for (const RunSetting& setting : all_run_settings()) {
    const std::string flag = fmt::format("--{}", setting.name), help(setting.help);
    command->option_defaults()->group(std::string(setting.group));
    if (setting.toggle != nullptr) {
      command->add_flag(flag, run.*setting.toggle, help);
    } else if (setting.placeholder.empty()) {
      command->add_flag(flag + "{latest}", run.*setting.text, help)
          ->check(CLI::IsMember({"latest", "auto"}));
    } else {
      command->add_option(flag, run.*setting.text, help)
          ->type_name(std::string(setting.placeholder));
    }
  }
  return {command,
          [flags] { return run_among_ranks([&](World* world) { return train(*flags, world); }); }};
}

}  // namespace thimble
