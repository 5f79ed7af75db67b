// thimble train: plan, then train inside the plan.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <optional>

#include "base/build_id.h"
#include "base/error.h"
#include "base/host/stop_signals.h"
#include "base/io/file.h"
#include "base/io/file_digest.h"
#include "cli/console.h"
#include "cli/fitting.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "comm/small_collectives.h"
#include "data/fingerprint.h"
#include "report/plan_report.h"
#include "report/run_report.h"
#include "request/resume.h"
#include "runs/run_folder.h"
#include "train/trainer.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

struct TrainFlags {
  RecipeFlags recipe;
  RunSettings run;
};

constexpr const char* kStoppingRank =
    "\nthimble: this rank was told to stop; a checkpoint is saved after this step where all ranks "
    "still are there; else go on from the last one with --resume\n";
constexpr const char* kStopping =
    "\nthimble: stopping; a checkpoint is saved after this step (once more: stops at once)\n";

std::string default_out(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", std::localtime(&now));
  std::string name = model;
  for (char& c : name) {
    if (c == ':' || c == '[' || c == ']' || c == ',') c = '-';
  }
  return fmt::format("runs/{}-{}", name, stamp);
}

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

TrainOptions options_from(const RunSettings& run, const Dataset& data, const std::string& out,
                          bool resume) {
  TrainOptions options = {
      .out = out, .resume = resume, .weights = run.weights, .tensorboard = run.tensorboard};
  if (!run.export_batches.empty()) {
    ensure_directory(run.export_batches);
    options.on_microbatch = [folder = run.export_batches](MicrobatchId which,
                                                          const TrainingStep::Part& part) {
      export_batch(folder, which, part);
    };
  }
  options.fingerprint = fingerprint_of(data.info());
  return options;
}

nlohmann::json result_json(const PlannedTraining& planned, const TrainResult& result,
                           const RunSettings& run) {
  nlohmann::json json = summary_of(planned, result);
  if (run.losses) json["losses"] = result.losses;
  if (run.times) {
    for (const double seconds : result.seconds) json["times_ms"].push_back(seconds * 1000);
  }
  return json;
}

// Whether the run resumes from the folder.
bool goes_on(const RunSettings& run, const std::string& out) {
  const Resume resume = run.resume.empty()     ? Resume::never
                        : run.resume == "auto" ? Resume::or_start
                                               : Resume::latest;
  const bool on = goes_on(resume, run.overwrite, out);
  if (resume == Resume::or_start && !on) {
    say("there is no checkpoint in '{}' yet: a new run begins\n", out);
  }
  return on;
}

// The folder of the run, held by the first rank, and whether there is something in it to go on with.
struct Place {
  std::optional<RunFolder> folder;
  std::string out;
  bool resume = false;
};

Place place_of(const RunSettings& run, const Recipe& recipe, World* world) {
  Place place;
  if (world == nullptr || world->first()) {
    place.folder.emplace(run.out.empty() ? RunFolder::unique(default_out(recipe.model.name))
                                         : RunFolder(run.out));
    place.out = place.folder->path();
    place.resume = goes_on(run, place.out);
  }
  if (world != nullptr) {
    place.out = text_of_first(world->ranks(), place.out);
    place.resume = !text_of_first(world->ranks(), place.resume ? "yes" : "").empty();
  }
  return place;
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

void print_result(const PlannedTraining& planned, const TrainResult& result) {
  const std::string tested =
      result.test_count == 0
          ? "not tested"
          : fmt::format("test {} on {} records", spelt_out(result.test), result.test_count);
  print("\n{}: {}, train loss {:.4f}, {:.1f} ms a step", planned.full().model.options.name, tested,
        result.train.loss, result.step_ms);
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
    row("process beside it", process_beside(planned.plan().arena), "at most, all along");
  }
  print("\ncheckpoint {}\nweights sha256 {}\n", result.checkpoint, result.weights_sha256);
}

int train(const TrainFlags& flags, World* world) {
  const bool first = world == nullptr || world->first();
  Request request = requested(flags.recipe.model, flags.recipe.overrides(), world);
  user_check(world != nullptr || !request.recipe.ranks.several(),
             "{0} ranks are started by mpirun: `mpirun -np {0} thimble train ...`; `thimble plan "
             "--ranks {0}` says what each of them will need",
             request.recipe.ranks.count);
  const auto data = open_data(request, true);
  const RunSettings run = run_settings(flags.run, request.run_in_file);
  const bool json = flags.recipe.json;
  user_check(run.resume.empty() || !run.out.empty(),
             "--resume goes on with a run that has a folder; say which with --out");
  for (const auto& [flag, on] : {std::pair("--losses", run.losses), {"--times", run.times}}) {
    user_check(!on || json, "{} says nothing without --json", flag);
  }
  const Place place = place_of(run, request.recipe, world);
  const std::string& out = place.out;
  if (place.resume) {
    resume_request(request, out);
    const auto note = resume_microbatch(request, out);
    if (note && launched_rank() == 0) say("thimble: note: {}\n", *note);
  }
  TrainOptions options = options_from(run, *data, out, place.resume);
  if (world != nullptr) {
    check_run_identity(
        world->ranks(),
        {fmt::format("{} of {}", file_sha256("/proc/self/exe").substr(0, 12), build_id()),
         to_json(request.recipe), options.fingerprint});
  }
  const Feeder feeder(*data, feed_options(request.recipe));
  auto planned = plan_asked(request, open_machine(request, Profiles::always, world), json, world);
  if (!planned) return kInfeasible;
  if (world != nullptr) {
    planned->backend().join(world->ranks());
    options.saved = [world](const std::string& folder) {
      world->failure_detector().set_remedy(
          fmt::format("the last checkpoint is {}: go on with --resume", folder));
    };
  }

  const Model& model = planned->full().model;
  const StopSignals signals(world == nullptr ? kStopping : kStoppingRank);
  options.stop = [&signals] { return signals.received() != 0; };
  Trainer trainer(*planned, feeder, options);
  if (!json && first) {
    say("{}: {} parameters, {}, {} steps; arena {} bytes ({}){}\n", model.options.name,
        parameter_count(model.graph), batch_text(*planned), trainer.steps(),
        planned->plan().arena.count, to_string(planned->plan().arena),
        world == nullptr ? ""
                         : fmt::format(" on each of {} ranks, over {}", world->size(),
                                       planned->backend().ranks()->name()));
  }
  if (!trainer.weights_note().empty() && first) {
    say("{}: {}\n", run.weights, trainer.weights_note());
  }
  if (!run.export_initial.empty()) trainer.export_weights(run.export_initial);
  ProgressDisplay display;
  const TrainResult result = trainer.run([&](const Progress& p) {
    if (first) display.show(p);
  });

  if (json && first) print_json(result_json(*planned, result, run));
  if (result.stopped) {
    const int signal = signals.received() != 0 ? signals.received() : SIGTERM;
    if (first) {
      say("thimble: stopped by {} after step {} of {}; checkpoint {}; to go on, repeat the command "
          "with "
          "--resume --out {}\n",
          name_of_signal(signal), result.steps, trainer.steps(), result.checkpoint, out);
    }
    return kStoppedBySignal + signal;
  }
  if (!json && first) print_result(*planned, result);
  return kOk;
}

int run_train(const TrainFlags& flags) {
  return run_among_ranks([&](World* world) { return train(flags, world); });
}

}  // namespace

Command add_train(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "Plan a training step, then train inside the plan");
  auto flags = std::make_shared<TrainFlags>();
  flags->recipe.add_model_to(*command);
  flags->recipe.add_to(*command, true);
  CLI::OptionDefaults& defaults = *command->option_defaults();

  defaults.group("Checkpoints and tests");
  command->add_option("--out", flags->run.out, "Folder for checkpoints (runs/MODEL-TIME)")
      ->type_name("FOLDER");
  command
      ->add_flag("--resume{latest}", flags->run.resume,
                 "Continue from the latest checkpoint in --out; `--resume auto`: or start, if none")
      ->check(CLI::IsMember({"latest", "auto"}));
  command->add_flag("--overwrite", flags->run.overwrite,
                    "Start again where --out has a checkpoint");
  command->add_option("--weights", flags->run.weights, "Start from this safetensors file")
      ->type_name("FILE");

  defaults.group("For other programs");
  command
      ->add_option("--tensorboard", flags->run.tensorboard,
                   "Write losses and metrics as TensorBoard's event files")
      ->type_name("FOLDER");
  command
      ->add_option("--export-initial", flags->run.export_initial,
                   "Write the first weights as safetensors")
      ->type_name("FILE");
  command
      ->add_option("--export-batches", flags->run.export_batches,
                   "Write every batch as safetensors")
      ->type_name("FOLDER");
  command->add_flag("--times", flags->run.times, "With --json: the time of every step");
  command->add_flag("--losses", flags->run.losses, "With --json: the loss of every step");
  return {command, [flags] { return run_train(*flags); }};
}

}  // namespace thimble
