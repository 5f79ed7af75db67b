// thimble export: the weights of a run as one file for other programs.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/trained.h"
#include "weights/adapter_file.h"
#include "weights/checkpoint.h"
#include "weights/merged_base.h"
#include "weights/weights_file.h"
#include "weights/write_onnx.h"

namespace thimble {
namespace {

struct ExportFlags {
  std::string run, file, names, weights;
  bool adapters = false, merged = false, coded = false;
};

// Reads no weights into an arena: rows go from file to file.
int merge(const ExportFlags& flags, const std::string& checkpoint, const PlannedTraining& planned) {
  user_check(flags.weights.empty() && flags.names.empty() && !flags.adapters,
             "--merged takes the adapters of the checkpoint, by the names of their base; leave "
             "--weights, --names and --adapters out");
  const std::string& name = planned.recipe.model.name;
  const int64_t count = merge_adapters(
      adapted_base(planned.full().model, planned.recipe.tuning.adapters, checkpoint, flags.run),
      flags.file);
  say("{}: {} with {} adapters merged\n", flags.file, name, count);
  return kOk;
}

int run(const ExportFlags& flags) {
  const std::string checkpoint = checkpoint_in(flags.run);
  Recipe recipe = recipe_in(checkpoint);
  recipe.device = usual_device();
  auto planned = plan_or_explain(recipe, false);
  if (!planned) return kInfeasible;
  if (flags.merged) return merge(flags, checkpoint, *planned);
  TrainedModel trained(*planned);
  say_note(flags.weights, trained.load({checkpoint, flags.weights}));
  if (flags.file.ends_with(".onnx")) {
    user_check(flags.names.empty() && !flags.adapters && !flags.coded,
               "an ONNX file has the names and types of the file that the net came from; leave "
               "--names, --adapters and --coded out");
    write_onnx(flags.file, trained.program(), trained.model());
    say("{}: {} for inference\n", flags.file, recipe.model.name);
    return kOk;
  }
  const std::optional<ForeignNames>& foreign = trained.model().foreign;
  if (flags.adapters) {
    save_adapters(flags.file, trained.program(), recipe.tuning.adapters, foreign,
                  trained.model().first_values);
    say("{}: the adapters of {} for PEFT\n", flags.file, recipe.model.name);
    return kOk;
  }
  // A net from outside goes back as it came.
  const bool outside = !trained.model().first_values.empty();
  const std::string names = !flags.names.empty() ? flags.names
                            : outside            ? foreign->program
                                                 : "thimble";
  const bool own = names == "thimble";
  user_check(own || (foreign && foreign->program == names),
             "{} has no names by which {} knows it; choose --names {}", recipe.model.name, names,
             foreign ? "thimble or " + foreign->program : "thimble");
  save_weights(flags.file, trained.program(), own ? std::nullopt : foreign, flags.coded);
  say("{}: {} by the names of {}\n", flags.file, recipe.model.name, names);
  return kOk;
}

}  // namespace

Command add_export(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command =
      app.add_subcommand("export", "Write the weights of a run for other programs (safetensors)");
  add_argument(*command, "run", flags->run,
               "Folder of the run (--out of `thimble train`), or a checkpoint");
  add_argument(*command, "file", flags->file,
               "File to write: .safetensors, or .onnx of a net that came as such a file");
  add_value(*command, "--names", flags->names, "NAME",
            "Whose names and layouts: thimble, or transformers (of gpt), or pytorch (of nets "
            "from outside, where it is the usual) (thimble)");
  add_value(*command, "--weights", flags->weights, "FILE", "Other weights than the checkpoint's");
  command->add_flag("--adapters", flags->adapters,
                    "Its adapters alone (--lora), as a folder that PEFT reads");
  command->add_flag("--coded", flags->coded,
                    "Matrices in 4 bits (--frozen nf4) as bitsandbytes stores them");
  command->add_flag("--merged", flags->merged,
                    "The files of its base with the adapters added, as a new folder");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
