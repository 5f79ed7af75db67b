#include "cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "data/open.h"

namespace thimble {
namespace {

// Typed, a zero is a mistake; in the fields it stands for "not given".
std::string at_least_one(const std::string& typed) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  const bool whole = error == std::errc() && end == typed.data() + typed.size();
  return whole && number >= 1 ? "" : fmt::format("wants a whole number from 1 on, not '{}'", typed);
}

}  // namespace

void CommonFlags::add_to(CLI::App& command) {
  command.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_option("model", model, "Model name (see `thimble list`) or recipe file (.toml)")
      ->required();
  command.add_option("--data", data, "Data set: digits, cifar10, mnist, idx, generated");
  command.add_option("--data-dir", data_dir, "Folder of the data set's files");
  command.add_option("--device", device, "cpu, or null (plans only)");
  command.add_option("--threads", threads, "Threads; 0: one per core")->check(CLI::NonNegativeNumber);
  command.add_option("--batch", batch, "Rows of a batch")->check(at_least_one);
  command.add_option("--classes", classes, "Classes, where the data do not say");
  command.add_option("--image", image, "Image size H,W,C, where the data do not say")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->expected(3);
  command.add_option("--layers", layers, "mlp, lstm: layers");
  command.add_option("--hidden", hidden, "mlp, lstm: units of a layer");
  command.add_option("--length", length, "lstm: time steps");
  command.add_option("--dropout", dropout, "Dropout rate");
  command.add_option("--label-smoothing", label_smoothing, "Label smoothing");
  command.add_option("--optimizer", optimizer, "sgd, nesterov, adam, adamw");
  command.add_option("--momentum", momentum, "Momentum of sgd and nesterov (0.9)");
  command.add_option("--weight-decay", weight_decay, "Weight decay");
  command.add_option("--planner", planner, "Policy of the planner");
  command.add_option("--memory", memory, "Byte budget of the arena, for example 64MiB");
  command.add_option("--seed", seed, "Seed of everything random");
  command.add_flag("--json", json, "One JSON object on stdout");
}

Resolved resolve(const CommonFlags& flags, bool needs_data) {
  Resolved resolved;
  const ModelFamily& family = find_model_family(flags.model);
  resolved.sequences = family.sequences;
  const auto not_negative = [](std::string_view flag, auto value) {
    user_check(value >= 0, "{} cannot be {}", flag, value);
  };
  not_negative("--classes", flags.classes);
  not_negative("--layers", flags.layers);
  not_negative("--hidden", flags.hidden);
  not_negative("--length", flags.length);

  ModelOptions& model = resolved.recipe.model;
  model.name = flags.model;
  model.batch = flags.batch;
  model.classes = flags.classes;
  model.layers = flags.layers;
  model.hidden = flags.hidden;
  model.length = flags.length;
  model.dropout = flags.dropout;
  model.label_smoothing = flags.label_smoothing;
  if (!flags.image.empty()) {
    for (const int64_t extent : flags.image) {
      user_check(extent >= 1, "--image wants three positive numbers H,W,C");
    }
    model.image = Shape(flags.image);
  }

  user_check(!family.sequences || flags.data.empty() || flags.data == "generated",
             "{} reads generated sequences; leave --data out", flags.model);
  if (!family.sequences && (needs_data || !flags.data.empty())) {
    ModelOptions usual = model;
    family.complete(usual);
    const bool small = usual.image[0] <= 32 && flags.image.empty();
    const std::string name = !flags.data.empty() ? flags.data : small ? "digits" : "generated";
    resolved.dataset = open_dataset(name, flags.data_dir,
                                    {.image = usual.image, .classes = usual.classes});
    model.image = resolved.dataset->info().image;
    model.classes = resolved.dataset->info().classes;
  }

  OptimizerSpec& optimizer = resolved.recipe.optimizer;
  optimizer = parse_optimizer(flags.optimizer);
  if (flags.momentum >= 0) optimizer.momentum = flags.momentum;
  user_check(optimizer.momentum < 1, "--momentum must be in [0, 1), not {}", optimizer.momentum);
  if (flags.weight_decay >= 0) optimizer.weight_decay = flags.weight_decay;

  resolved.recipe.device = flags.device;
  resolved.recipe.threads = flags.threads;
  resolved.recipe.planner = flags.planner;
  if (!flags.memory.empty()) resolved.recipe.memory = parse_bytes(flags.memory);
  return resolved;
}

std::unique_ptr<Feeder> make_feeder(const Resolved& resolved, const FeedOptions& options) {
  constexpr int64_t kSequences = 6400;
  constexpr int64_t kTestSequences = 640;
  if (resolved.sequences) return make_sequence_feeder(options, kSequences, kTestSequences);
  return make_image_feeder(*resolved.dataset, options);
}

std::optional<PlannedStepProgram> plan_or_explain(const Recipe& recipe, bool json) {
  auto planned = plan_training(recipe);
  if (auto* ready = std::get_if<PlannedStepProgram>(&planned)) return std::move(*ready);
  const Infeasible& infeasible = std::get<Infeasible>(planned);
  if (json) {
    print_json({{"infeasible", true},
                {"min_bytes", infeasible.min_bytes.count},
                {"why", infeasible.why}});
  }
  fmt::print(stderr, "thimble: no plan fits: {}; the smallest budget that does is {} ({} bytes)\n",
             infeasible.why, to_string(infeasible.min_bytes), infeasible.min_bytes.count);
  return std::nullopt;
}

void print_json(const nlohmann::json& object) { fmt::print("{}\n", object.dump(2)); }

}  // namespace thimble
