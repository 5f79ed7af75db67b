// thimble evaluate: tests a trained model on its test records, or on others.
#include <fmt/format.h>

#include "cli/console.h"
#include "cli/progress.h"
#include "cli/trained.h"
#include "request/request.h"
#include "train/trainer.h"

namespace thimble {
namespace {

struct EvaluateFlags : TrainedFlags {
  std::string data;
};

// The checkpoint's recipe, for one process, with the data that were asked for.
Request request_of(const EvaluateFlags& flags, const std::string& checkpoint) {
  Request request;
  request.recipe = flags.recipe_of(checkpoint);
  request.recipe.ranks = {};
  request.recipe.evaluate = true;
  if (!flags.data.empty()) request.recipe.data.name = flags.data;
  if (!flags.data_dir.empty()) request.recipe.data.folder = flags.data_dir;
  return request;
}

int run(const EvaluateFlags& flags) {
  const std::string checkpoint = checkpoint_in(flags.run);
  Request request = request_of(flags, checkpoint);
  const auto data = open_data(request, true);
  const Feeder feeder(*data, feed_options(request.recipe));
  auto planned = plan_or_explain(request.recipe, flags.json);
  if (!planned) return kInfeasible;
  Trainer trainer(*planned, feeder, {});
  say_note(flags.weights,
           load_trained({checkpoint, flags.weights}, trainer.program(), planned->full().model));
  int64_t count = 0;
  const Figures tested = *trainer.evaluate(feeder, &count);
  if (flags.json) {
    nlohmann::json json = {{"test_loss", tested.loss}, {"test_records", count}};
    for (const Figure& metric : tested.metrics) json["test_" + metric.name] = metric.value;
    json["weights"] = flags.weights.empty() ? checkpoint : flags.weights;
    json["arena_bytes"] = planned->plan().arena.count;
    print_json(json);
    return kOk;
  }
  const std::string metrics = tested.metrics.empty() ? "" : ", " + spelt_out(tested);
  print("{}: loss {:.4f}{} on {} records of {}\n", request.recipe.model.name, tested.loss, metrics,
        count, data->info().name);
  return kOk;
}

}  // namespace

Command add_evaluate(CLI::App& app) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* command = app.add_subcommand("evaluate", "Test a trained model on its test records");
  add_argument(*command, "run", flags->run,
               "Folder of the run (--out of `thimble train`), or a checkpoint");
  add_value(*command, "--data", flags->data, "NAME", "Other records to test on (the run's)");
  add_value(*command, "--weights", flags->weights, "FILE",
            "Other weights than the checkpoint's (safetensors)");
  flags->add_to(*command, "Folder of the data (the run's)");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
