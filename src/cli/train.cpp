// thimble train: plan, then train inside the plan.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/stop_signals.h"
#include "cli/console.h"
#include "cli/fitting.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "data/fingerprint.h"
#include "report/plan_report.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/safetensors.h"
#include "train/trainer.h"

namespace thimble {
namespace {

struct Flags {
  RecipeFlags recipe;
  std::string out;
  std::string resume;  // latest, auto; empty: no
  bool overwrite = false;
  std::string weights;
  std::string export_initial;
  std::string export_batches;
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

TrainOptions options_from(const Flags& flags, const Resolved& resolved, const std::string& out,
                          bool resume) {
  TrainOptions options = {.out = out, .resume = resume, .weights = flags.weights};
  if (!flags.export_batches.empty()) {
    ensure_directory(flags.export_batches);
    options.on_microbatch = [folder = flags.export_batches](MicrobatchId which,
                                                            const TrainingStep::Part& part) {
      export_batch(folder, which, part);
    };
  }
  if (resolved.dataset) options.fingerprint = fingerprint_of(resolved.dataset->info());
  return options;
}

// What the process took at most that is not the arena.
Bytes process_beside(Bytes arena) { return std::max(Bytes(), resident_peak() - arena); }

nlohmann::json result_json(const PlannedByCommand& asked, const TrainResult& result,
                           const Flags& flags) {
  const PlannedTraining& planned = asked.training;
  nlohmann::json json = summary_of(asked);
  json.update({{"steps", result.steps},
               {"epochs", result.epochs},
               {"train_loss", result.train.loss},
               {"test_loss", result.test.loss},
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
  for (const Metric& metric : planned.full().model.metrics) {
    json["train_" + metric.name] = result.train[metric.name];
    json["test_" + metric.name] = result.test[metric.name];
  }
  if (result.beside_arena) {
    json["device_overhead_bytes"] = result.beside_arena->count;
  } else {
    json["process_beside_arena_bytes"] = process_beside(planned.plan().arena).count;
  }
  if (planned.recipe.sparsity.enabled()) {
    json.update({{"reallocations", result.reallocations}, {"prune_threshold", result.threshold}});
  }
  if (flags.losses) json["losses"] = result.losses;
  if (flags.times) {
    for (const double seconds : result.seconds) json["times_ms"].push_back(seconds * 1000);
  }
  return json;
}

// A run that goes on keeps its activations as it began: an automatic codec is not chosen anew.
void resume_codec(const std::string& out, Recipe& recipe) {
  const auto folder = latest_checkpoint(out);
  if (!recipe.codec.automatic || !folder) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  const nlohmann::json asked = to_json(recipe);
  const auto same = [&](const char* key) {
    return begun.contains(key) && begun[key] == asked[key];
  };
  if (!same("codec") || !same("codec_only") || !begun.contains("codec_chosen")) return;
  try {
    find_field(fields_of(recipe), "codec-chosen")->set(begun["codec_chosen"]);
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
}

// Nor is what a budget chose: a run that goes on with another recomputes more, or less, and has the same
// bits.
void resume_choices(const std::string& out, Resolved& resolved) {
  const auto folder = latest_checkpoint(out);
  if (!folder || !is_fitted(resolved.recipe, resolved.said)) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  try {
    for_each_field(resolved.recipe, [&](const Field& field) {
      std::string key = field.name();
      std::ranges::replace(key, '-', '_');
      const std::string_view technique = field.about().technique;
      const bool chosen = !technique.empty() && technique != "recomputation";
      if (chosen && begun.contains(key) && !resolved.said.contains(field.name())) {
        field.set(begun[key]);
      }
    });
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
  resolved.recipe.fit = false;
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

// What the recipe file says of the run, where nothing was typed.
Flags with_file(Flags flags, const Settings& run) {
  const auto text = [&](const char* name, std::string& member) {
    const auto at = run.find(name);
    if (at == run.end() || !member.empty()) return;
    if (at->second.is_string()) member = at->second.get<std::string>();
    if (at->second == true) member = "latest";  // resume
    user_check(at->second.is_string() || at->second.is_boolean(), "--{} wants text, not {}", name,
               at->second.dump());
  };
  const auto toggle = [&](const char* name, bool& member) {
    const auto at = run.find(name);
    if (at == run.end()) return;
    user_check(at->second.is_boolean(), "--{} is true or false, not {}", name, at->second.dump());
    member = member || at->second.get<bool>();
  };
  text("out", flags.out);
  text("resume", flags.resume);
  text("weights", flags.weights);
  text("export-initial", flags.export_initial);
  text("export-batches", flags.export_batches);
  toggle("overwrite", flags.overwrite);
  toggle("times", flags.times);
  toggle("losses", flags.losses);
  user_check(flags.resume.empty() || flags.resume == "latest" || flags.resume == "auto",
             "--resume is latest or auto, not '{}'", flags.resume);
  return flags;
}

int run(const Flags& typed) {
  Resolved resolved = resolve(typed.recipe, true);
  const Flags flags = with_file(typed, resolved.run);
  user_check(flags.resume.empty() || !flags.out.empty(),
             "--resume goes on with a run that has a folder; say which with --out");
  for (const auto& [flag, on] : {std::pair("--losses", flags.losses), {"--times", flags.times}}) {
    user_check(!on || flags.recipe.json, "{} says nothing without --json", flag);
  }
  const RunFolder folder = flags.out.empty()
                               ? RunFolder::unique(default_out(resolved.recipe.model.name))
                               : RunFolder(flags.out);
  const std::string& out = folder.path();
  const bool resume = goes_on(flags, out);
  if (resume) {
    resume_codec(out, resolved.recipe);
    resume_choices(out, resolved);
  }
  const std::unique_ptr<Feeder> feeder = make_feeder(resolved);
  auto asked = plan_asked(resolved, flags.recipe.json, Measuring::always);
  if (!asked) return kInfeasible;
  PlannedTraining* const planned = &asked->training;

  const Model& model = planned->full().model;
  TrainOptions options = options_from(flags, resolved, out, resume);
  const StopSignals signals(kStopping);
  options.stop = [&signals] { return signals.received() != 0; };
  Trainer trainer(*planned, *feeder, options);
  if (!flags.recipe.json) {
    say("{}: {} parameters, {}, {} steps; arena {} bytes ({})\n", model.options.name,
        parameter_count(model.graph), batch_text(*planned), trainer.steps(),
        planned->plan().arena.count, to_string(planned->plan().arena));
  }
  if (!trainer.weights_note().empty()) say("{}: {}\n", flags.weights, trainer.weights_note());
  if (!flags.export_initial.empty()) trainer.export_weights(flags.export_initial);
  ProgressDisplay display;
  const TrainResult result = trainer.run([&](const Progress& p) { display.show(p); });

  if (flags.recipe.json) print_json(result_json(*asked, result, flags));
  if (result.stopped) {
    say("thimble: stopped by {} after step {} of {}; checkpoint {}; to go on, repeat the command "
        "with "
        "--resume --out {}\n",
        name_of_signal(signals.received()), result.steps, trainer.steps(), result.checkpoint, out);
    return kStoppedBySignal + signals.received();
  }
  if (flags.recipe.json) return kOk;
  const std::string tested =
      result.test_count == 0
          ? "not tested"
          : fmt::format("test {} on {} records", spelt_out(result.test), result.test_count);
  fmt::print("\n{}: {}, train loss {:.4f}, {:.1f} ms a step\n\n", model.options.name, tested,
             result.train.loss, result.step_ms);
  fmt::print("{}", memory_table(planned->plan()));
  const auto row = [](std::string_view what, Bytes size, std::string_view note) {
    fmt::print("  {:<24}{:>14}{:>12}   {}\n", what, size.count, to_string(size), note);
  };
  row("arena, measured", result.measured_arena,
      result.measured_arena == planned->plan().arena ? "as planned" : "NOT as planned");
  if (result.beside_arena) {
    row("on the card beside it", *result.beside_arena,
        "CUDA's context, libraries' code, other programs");
  } else {
    row("process beside it", process_beside(planned->plan().arena), "at most, all along");
  }
  fmt::print("\ncheckpoint {}\nweights sha256 {}\n", result.checkpoint, result.weights_sha256);
  return kOk;
}

}  // namespace

Command add_train(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "Plan a training step, then train inside the plan");
  auto flags = std::make_shared<Flags>();
  flags->recipe.add_model_to(*command);
  flags->recipe.add_to(*command, true);
  CLI::OptionDefaults& defaults = *command->option_defaults();

  defaults.group("Checkpoints and tests");
  command->add_option("--out", flags->out, "Folder for checkpoints (runs/MODEL-TIME)")
      ->type_name("FOLDER");
  command
      ->add_flag("--resume{latest}", flags->resume,
                 "Continue from the latest checkpoint in --out; `--resume auto`: or start, if none")
      ->check(CLI::IsMember({"latest", "auto"}));
  command->add_flag("--overwrite", flags->overwrite, "Start again where --out has a checkpoint");
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
