// thimble train: plan, then train inside the plan.
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/stop_signals.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "data/fingerprint.h"
#include "report/plan_report.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/safetensors.h"
#include "train/trainer.h"
#include "transform/codec_json.h"

namespace thimble {
namespace {

struct Flags {
  CommonFlags common;
  double epochs = 10;
  int64_t steps = 0;
  double rate = -1;
  std::string schedule = "cosine";
  std::vector<double> milestones;  // epochs
  double factor = 0.2;
  double warmup = 0;  // epochs
  bool augment = false;
  bool no_flip = false;
  int crop_pad = 4;
  std::string out;
  std::string resume;  // latest, auto; empty: no
  bool overwrite = false;
  double save_every = 1;         // epochs
  double evaluate_every = 1;     // epochs
  int64_t reallocate_every = 0;  // steps; 0: the usual schedule
  std::string weights;
  std::string export_initial;
  std::string export_batches;
  bool no_evaluation = false;
  bool losses = false;
  bool times = false;
};

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

int64_t in_steps(double epochs, int64_t per_epoch) {
  return std::max<int64_t>(epochs > 0 ? 1 : 0,
                           static_cast<int64_t>(epochs * static_cast<double>(per_epoch) + 0.5));
}

// Every batch (or microbatch) as a file, so that another program can train on the same data.
void export_batch(const std::string& folder, MicrobatchId which, const TrainingStep::Part& part) {
  std::vector<TensorToWrite> tensors;
  Program& program = *part.program;
  const Model& model = part.training->model;
  for (const ValueId value : {model.pixels, model.sequence, model.labels}) {
    if (!value.valid()) continue;
    const Value& v = program.graph()[value];
    tensors.push_back({v.name, v.type, program.bytes_of(value), {}});
  }
  const std::string number = part.plan->microbatches > 1 ? fmt::format("-{:04}", which.number) : "";
  write_safetensors(fmt::format("{}/batch-{:06}{}.safetensors", folder, which.step, number),
                    tensors);
}

TrainOptions options_from(const Flags& flags, const Resolved& resolved, const std::string& out,
                          int64_t per_epoch, bool resume) {
  user_check(flags.epochs > 0 && flags.epochs < 1e6, "--epochs must be above 0, not {}",
             flags.epochs);
  user_check(flags.steps >= 0 && flags.steps <= 100'000'000, "--steps cannot be {}", flags.steps);
  const auto epochs = [](std::string_view flag, double value) {
    user_check(value >= 0 && value < 1e6, "{} is a number of epochs, not {}", flag, value);
  };
  epochs("--warmup", flags.warmup);
  epochs("--save-every", flags.save_every);
  epochs("--eval-every", flags.evaluate_every);
  for (const double at : flags.milestones) epochs("--milestones", at);
  TrainOptions options;
  options.recipe = resolved.recipe;
  options.seed = flags.common.seed;
  options.steps = flags.steps > 0 ? flags.steps : in_steps(flags.epochs, per_epoch);
  options.save_every = in_steps(flags.save_every, per_epoch);
  options.evaluate_every = in_steps(flags.evaluate_every, per_epoch);
  user_check(flags.reallocate_every >= 0, "--reallocate-every cannot be {}",
             flags.reallocate_every);
  user_check(flags.reallocate_every == 0 || resolved.recipe.sparsity.enabled(),
             "--reallocate-every says nothing without --density, the share of nonzeros");
  options.reallocate_every = flags.reallocate_every;
  options.rate.kind = parse_schedule(flags.schedule);
  const bool adam = resolved.recipe.optimizer.kind != OptimizerSpec::Kind::sgd;
  options.rate.base = flags.rate >= 0 ? flags.rate : adam ? 1e-3 : 0.1;
  options.rate.warmup_steps = in_steps(flags.warmup, per_epoch);
  options.rate.factor = flags.factor;
  for (const double at : flags.milestones)
    options.rate.milestones.push_back(in_steps(at, per_epoch));
  options.out = out;
  options.resume = resume;
  options.weights = flags.weights;
  options.evaluate = !flags.no_evaluation;
  if (!flags.export_batches.empty()) {
    ensure_directory(flags.export_batches);
    options.on_microbatch = [folder = flags.export_batches](MicrobatchId which,
                                                            const TrainingStep::Part& part) {
      export_batch(folder, which, part);
    };
  }
  options.data = {{"set", resolved.dataset ? resolved.dataset->info().name : "sequences"},
                  {"augment", flags.augment},
                  {"flip", !flags.no_flip},
                  {"crop_pad", flags.crop_pad}};
  if (resolved.dataset) options.fingerprint = fingerprint_of(resolved.dataset->info());
  return options;
}

nlohmann::json result_json(const PlannedStepProgram& planned, const TrainResult& result,
                           const Flags& flags) {
  nlohmann::json json = summary_of(planned);
  json.update({{"steps", result.steps},
               {"epochs", result.epochs},
               {"train_loss", result.train_loss},
               {"train_accuracy", result.train_accuracy},
               {"test_loss", result.test_loss},
               {"test_accuracy", result.test_accuracy},
               {"measured_arena_bytes", result.measured_arena.count},
               {"evaluation_arena_bytes", result.evaluation_arena.count},
               {"step_ms", result.step_ms},
               {"loss_scale", result.loss_scale},
               {"skipped_steps", result.skipped},
               {"weights_sha256", result.weights_sha256},
               {"rss_peak_bytes", resident_peak().count},
               {"resumed_at", result.resumed_at},
               {"stopped", result.stopped},
               {"checkpoint", result.checkpoint}});
  if (result.beside_arena) json["device_overhead_bytes"] = result.beside_arena->count;
  if (planned.training->sparsity.enabled()) {
    json.update({{"reallocations", result.reallocations}, {"prune_threshold", result.threshold}});
  }
  if (flags.losses) json["losses"] = result.losses;
  if (flags.times) {
    for (const double seconds : result.seconds) json["times_ms"].push_back(seconds * 1000);
  }
  return json;
}

// A run that goes on keeps its activations as it began: an automatic codec is not chosen anew.
void resume_codec(const std::string& out, CodecSpec& codec) {
  const auto folder = latest_checkpoint(out);
  if (!codec.automatic || !folder) return;
  const nlohmann::json recipe = recipe_of_checkpoint(*folder);
  const auto begun = to_json(codec);
  const auto same = [&](const char* key) {
    return recipe.contains(key) && recipe[key] == begun[key];
  };
  if (!same("codec") || !same("codec_only")) return;  // refused when it is loaded
  try {
    codec = codec_from_json(recipe);
  } catch (const nlohmann::json::exception& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
}

// Whether the run goes on with what is in the folder.
bool goes_on(const Flags& flags, const std::string& out) {
  const bool begun = latest_checkpoint(out).has_value();
  if (flags.resume == "auto" && !begun) {
    std::error_code unknown;
    user_check(
        !std::filesystem::is_symlink(out + "/latest", unknown),
        "'{0}/latest' points at no whole checkpoint; put back what it points at, or remove it "
        "to start anew",
        out);
    say("there is no checkpoint in '{}' yet: a new run begins\n", out);
  }
  user_check(!begun || !flags.resume.empty() || flags.overwrite,
             "'{}' already holds a checkpoint; pass --resume to continue it, --overwrite to start "
             "again, or another --out",
             out);
  return flags.resume == "auto" ? begun : !flags.resume.empty();
}

int run(const Flags& flags) {
  user_check(flags.resume.empty() || !flags.out.empty(),
             "--resume goes on with a run that has a folder; say which with --out");
  Resolved resolved = resolve(flags.common, true);
  const RunFolder folder =
      flags.out.empty() ? RunFolder::unique(default_out(flags.common.model)) : RunFolder(flags.out);
  const std::string& out = folder.path();
  const bool resume = goes_on(flags, out);
  if (resume) resume_codec(out, resolved.recipe.codec);
  FeedOptions feed;
  feed.seed = flags.common.seed;
  feed.augment = flags.augment;
  feed.flip = !flags.no_flip;
  feed.crop_pad = flags.crop_pad;
  const std::unique_ptr<Feeder> feeder = make_feeder(resolved, feed);
  auto planned = plan_or_explain(resolved.recipe, flags.common.json);
  if (!planned) return kInfeasible;

  const Model& model = planned->training->model;
  const int64_t per_epoch =
      std::max<int64_t>(1, feeder->train_count() / planned->microbatches.batch);
  TrainOptions options = options_from(flags, resolved, out, per_epoch, resume);
  if (!flags.common.json) {
    say("{}: {} parameters, {}, {} steps; arena {} bytes ({})\n", model.options.name,
        parameter_count(model.graph), batch_text(*planned), options.steps,
        planned->plan.arena.count, to_string(planned->plan.arena));
  }
  const StopSignals signals(kStopping);
  options.stop = [&signals] { return signals.received() != 0; };
  Trainer trainer(*planned, *feeder, options);
  if (!trainer.weights_note().empty()) say("{}: {}\n", flags.weights, trainer.weights_note());
  if (!flags.export_initial.empty()) trainer.export_weights(flags.export_initial);
  ProgressDisplay display;
  const TrainResult result = trainer.run([&](const Progress& p) { display.show(p); });

  if (flags.common.json) print_json(result_json(*planned, result, flags));
  if (result.stopped) {
    say("thimble: stopped by {} after step {} of {}; checkpoint {}; to go on, repeat the command "
        "with "
        "--resume --out {}\n",
        name_of_signal(signals.received()), result.steps, options.steps, result.checkpoint, out);
    return kStoppedBySignal + signals.received();
  }
  if (flags.common.json) return kOk;
  const std::string tested = result.test_count == 0
                                 ? "not tested"
                                 : fmt::format("test accuracy {:.2f}% on {} records",
                                               100 * result.test_accuracy, result.test_count);
  fmt::print("\n{}: {}, train loss {:.4f}, {:.1f} ms a step\n\n", model.options.name, tested,
             result.train_loss, result.step_ms);
  fmt::print("{}", memory_table(planned->plan));
  const auto row = [](std::string_view what, Bytes size, std::string_view note) {
    fmt::print("  {:<24}{:>14}{:>12}   {}\n", what, size.count, to_string(size), note);
  };
  row("arena, measured", result.measured_arena,
      result.measured_arena == planned->plan.arena ? "as planned" : "NOT as planned");
  if (result.beside_arena) {
    row("on the card beside it", *result.beside_arena,
        "CUDA's context, libraries' code, other programs");
  }
  fmt::print("\ncheckpoint {}\nweights sha256 {}\n", result.checkpoint, result.weights_sha256);
  return kOk;
}

}  // namespace

Command add_train(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "Plan a training step, then train inside the plan");
  auto flags = std::make_shared<Flags>();
  flags->common.add_to(*command);
  CLI::OptionDefaults& defaults = *command->option_defaults();

  defaults.group("Data");
  command->add_flag("--augment", flags->augment, "Random crops and mirror images");
  command->add_flag("--no-flip", flags->no_flip, "With --augment: crops only");
  command->add_option("--crop-pad", flags->crop_pad, "With --augment: padding of the crops (4)")
      ->type_name("N")
      ->check(CLI::Range(0, 64));

  defaults.group("How long, how fast");
  command->add_option("--epochs", flags->epochs, "Passes over the training data (10)")
      ->type_name("X");
  command->add_option("--steps", flags->steps, "Training steps, instead of epochs")->type_name("N");
  command->add_option("--lr", flags->rate, "Learning rate (0.1; adam, adamw, adafactor: 0.001)")
      ->type_name("X")
      ->check(finite_not_negative);
  command
      ->add_option("--schedule", flags->schedule, "constant, step, cosine or inverse-sqrt (cosine)")
      ->type_name("NAME");
  command->add_option("--milestones", flags->milestones, "step: epochs at which the rate drops")
      ->type_name("X,Y,...")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--factor", flags->factor, "step: what the rate is multiplied by (0.2)")
      ->type_name("X")
      ->check(finite_not_negative);
  command->add_option("--warmup", flags->warmup, "Epochs of linear warm-up (0)")->type_name("X");

  command
      ->add_option("--reallocate-every", flags->reallocate_every,
                   "Steps between moves of nonzeros (100, then 200, 400, 800)")
      ->type_name("N");

  defaults.group("Checkpoints and tests");
  command->add_option("--out", flags->out, "Folder for checkpoints (runs/MODEL-TIME)")
      ->type_name("FOLDER");
  command
      ->add_flag("--resume{latest}", flags->resume,
                 "Continue from the latest checkpoint in --out; `--resume auto`: or start, if none")
      ->check(CLI::IsMember({"latest", "auto"}));
  command->add_flag("--overwrite", flags->overwrite, "Start again where --out has a checkpoint");
  command
      ->add_option("--save-every", flags->save_every,
                   "Epochs between checkpoints (1; 0: only at the end)")
      ->type_name("X");
  command
      ->add_option("--eval-every", flags->evaluate_every,
                   "Epochs between tests (1; 0: only at the end)")
      ->type_name("X");
  command->add_flag("--no-eval", flags->no_evaluation, "No tests, not even at the end");
  command->add_option("--weights", flags->weights, "Start from this safetensors file")
      ->type_name("FILE");

  defaults.group("For other programs");
  command
      ->add_option("--export-initial", flags->export_initial,
                   "Write the first weights as safetensors")
      ->type_name("FILE");
  command->add_option("--export-batches", flags->export_batches, "Write every batch as safetensors")
      ->type_name("FOLDER");
  command->add_flag("--times", flags->times, "With --json: the time of every step");
  command->add_flag("--losses", flags->losses, "With --json: the loss of every step");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
