#include "cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "cli/console.h"
#include "cli/costs_path.h"
#include "data/open.h"
#include "report/plan_report.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

// Typed, a zero is a mistake; in the fields it stands for "not given".
std::string at_least_one(const std::string& typed) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  const bool whole = error == std::errc() && end == typed.data() + typed.size();
  return whole && number >= 1 ? "" : fmt::format("wants a whole number from 1 on, not '{}'", typed);
}

std::string above_zero(const std::string& typed) {
  const std::string fault = finite_not_negative(typed);
  return !fault.empty() || std::stod(typed) > 0 ? fault : "wants a number above 0";
}

// Which values are kept encoded, and as what.
nlohmann::json encoded_json(const Graph& graph) {
  nlohmann::json json = nlohmann::json::object();
  for (const Encoded& encoded : find_encoded(graph)) {
    json[graph[encoded.value].name] = name_of(encoded.codec);
  }
  return json;
}

}  // namespace

std::string finite_not_negative(const std::string& typed) {
  double number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  const bool good = error == std::errc() && end == typed.data() + typed.size() &&
                    std::isfinite(number) && number >= 0;
  return good ? "" : fmt::format("wants a number from 0 on, not '{}'", typed);
}

void CommonFlags::add_to(CLI::App& command) {
  CLI::OptionDefaults& defaults = *command.option_defaults();
  defaults.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_option("model", model, "A name from `thimble list models`, or a recipe file (.toml)")
      ->type_name("")
      ->required();
  command.add_flag("--json", json, "One JSON object on stdout");

  defaults.group("Memory");
  command.add_option("--memory", memory, "Budget of the arena: 64MiB, 1.5GB, ..., or least (none)")
      ->type_name("BYTES");
  command
      .add_option(
          "--planner", planner,
          "How to meet it, from `thimble list planners` (optimal; without --memory: keep_all)")
      ->type_name("NAME");
  command.add_flag("--fold", fold, "sgd: add gradients straight into the momentum");
  command
      .add_option("--allow", allow,
                  "What may become of the numbers: exact, equivalent or approximate (approximate)")
      ->type_name("TIER");
  command
      .add_option(
          "--codec", codec,
          fmt::format("How activations are kept: none, {}; or auto[:NAME], chosen for --memory "
                      "tensor by tensor, NAME at most (none; auto: int4)",
                      codec_names()))
      ->type_name("NAME");
  for (const auto& [flag, list, text] :
       {std::tuple("--keep", &keep, "Results always kept, by node name (shell pattern)"),
        std::tuple("--recompute", &recompute, "Results always computed again, by node name"),
        std::tuple("--codec-only", &codec_only,
                   "Results that --codec applies to (all large ones)")}) {
    command.add_option(flag, *list, text)
        ->type_name("GLOB")
        ->delimiter(',')
        ->allow_extra_args(false)  // what follows may be the model
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  command
      .add_option("--costs", costs,
                  "Kernel times: auto (of `thimble calibrate`, where it measured), modelled, or a "
                  "file of it (auto)")
      ->type_name("FILE");
  add_step_to(command);
}

void CommonFlags::add_step_to(CLI::App& command) {
  CLI::OptionDefaults& defaults = *command.option_defaults();
  defaults.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  defaults.group("Device");
  command.add_option("--device", device, "cpu, cuda, or null: plans, runs nothing (cpu)")
      ->type_name("NAME");
  command
      .add_option("--tf32", on.tf32,
                  "On a GPU, products of fp32 may round their factors to 10 bits (on)")
      ->type_name("on|off")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}));
  command
      .add_option("--streams", on.streams, "On a GPU, kernels that may run at the same time (4)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  command.add_option("--threads", on.threads, "Threads (0: one per core)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);

  defaults.group("Model");
  command.add_option("--batch", batch, "Rows of a batch (the model's usual)")
      ->type_name("N")
      ->check(at_least_one);
  command.add_option("--microbatch", microbatch, "Rows computed at once (the whole batch)")
      ->type_name("N")
      ->check(at_least_one);
  command.add_option("--classes", classes, "Classes, where the data do not say")->type_name("N");
  command.add_option("--image", image, "Image size, where the data do not say")
      ->type_name("H,W,C")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->expected(3);
  command.add_option("--layers", layers, "mlp, lstm: layers (2); unet: halvings (3)")
      ->type_name("N");
  command
      .add_option(
          "--hidden", hidden,
          "mlp, lstm: units of a layer (256, 128); first channels of unet, resnet (16, 256)")
      ->type_name("N");
  command.add_option("--length", length, "lstm: time steps (64)")->type_name("N");
  command
      .add_option("--steps-at-once", steps_at_once,
                  "lstm: time steps of a layer that run as one (1; on a GPU 16)")
      ->type_name("N")
      ->check(at_least_one);
  command.add_option("--dropout", dropout, "Share of elements dropped (0)")->type_name("P");
  command
      .add_option("--norm", norm,
                  "wrn, resnet, unet: batch, group or carried normalisation (batch)")
      ->type_name("NAME");
  command.add_option("--label-smoothing", label_smoothing, "Share spread over all classes (0)")
      ->type_name("P");

  defaults.group("Optimizer");
  command
      .add_option("--optimizer", optimizer, "sgd, nesterov, adam, adamw or adafactor (nesterov)")
      ->type_name("NAME");
  command.add_option("--momentum", momentum, "Momentum of sgd and nesterov (0.9)")
      ->type_name("X")
      ->check(finite_not_negative);
  command.add_option("--weight-decay", weight_decay, "Weight decay (0; adamw: 0.01)")
      ->type_name("X")
      ->check(finite_not_negative);

  command.add_option("--state-bits", state_bits, "Bits a number of optimizer state: 32 or 8 (32)")
      ->type_name("N");
  command.add_option("--clip-norm", clip_norm, "Most that the norm of all gradients may be (any)")
      ->type_name("X")
      ->check(above_zero);
  command.add_flag("--clip-two-pass", clip_two_pass,
                   "Compute gradients twice for --clip-norm, in place of keeping them");
  add_precision_to(command);
  sparsity.add_to(command);

  defaults.group("Data");
  command
      .add_option("--data", data,
                  "A name from `thimble list data` (digits; large models: generated)")
      ->type_name("NAME");
  command.add_option("--data-dir", data_dir, "Folder of the set's files")->type_name("FOLDER");
  command.add_option("--seed", seed, "Seed of everything random (1)")->type_name("N");
}

void CommonFlags::add_precision_to(CLI::App& command) {
  command.option_defaults()->group("Precision");
  command
      .add_option("--precision", precision,
                  "Weights, gradients, momentum and activations: fp32, fp16 or bf16 (fp32)")
      ->type_name("NAME");
  command.add_flag("--master", master, "Weights in fp32, cast where they are used");
  command
      .add_option("--rounding", rounding,
                  "Updates of 16-bit weights: nearest, stochastic or kahan (nearest)")
      ->type_name("NAME");
  command
      .add_option("--loss-scale", loss_scale,
                  "dynamic, none, or a number for good (fp16: dynamic; else none)")
      ->type_name("X");
  command.add_option("--loss-scale-start", scaling.start, "dynamic: the first scale (128)")
      ->type_name("X");
  command
      .add_option("--loss-scale-interval", scaling.growth_interval,
                  "dynamic: clean steps before it grows (16384)")
      ->type_name("N");
  command.add_option("--loss-scale-growth", scaling.growth, "dynamic: it grows by this factor (2)")
      ->type_name("X");
  command
      .add_option("--loss-scale-backoff", scaling.backoff,
                  "dynamic: after an overflow it is multiplied by this (0.5)")
      ->type_name("X");
  command.add_option("--loss-scale-floor", scaling.floor, "dynamic: an error below this (1e-4)")
      ->type_name("X");
}

void CommonFlags::resolve_precision(Recipe& recipe) const {
  recipe.model.storage = parse_precision(precision);
  recipe.model.master = master;
  const bool small = recipe.model.storage != DType::f32;
  OptimizerSpec& spec = recipe.optimizer;
  spec.rounding = parse_rounding(rounding);
  user_check(small || !master, "fp32 weights are their own masters; leave --master out");
  user_check(
      spec.rounding == Rounding::nearest || (small && !master),
      "--rounding {} is for 16-bit weights; choose --precision fp16 or bf16 without --master",
      rounding);
  const bool fp16 = recipe.model.storage == DType::f16;
  const LossScaling kind = parse_loss_scaling(!loss_scale.empty() ? loss_scale
                                              : fp16              ? "dynamic"
                                                                  : "none");
  spec.scaling = scaling;
  spec.scaling.kind = kind.kind;
  if (kind.kind == LossScaling::Kind::fixed) spec.scaling.start = kind.start;
  check_loss_scaling(spec.scaling);
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
  // Beyond these the graph itself would not fit in memory.
  user_check(flags.layers <= 10'000, "--layers can be 10000 at most, not {}", flags.layers);
  user_check(flags.length <= 100'000, "--length can be 100000 at most, not {}", flags.length);
  user_check(flags.on.threads <= 1024, "--threads can be 1024 at most, not {}", flags.on.threads);

  ModelOptions& model = resolved.recipe.model;
  model.name = flags.model;
  model.batch = flags.batch;
  model.classes = flags.classes;
  model.layers = flags.layers;
  model.hidden = flags.hidden;
  model.length = flags.length;
  model.steps_at_once = flags.steps_at_once;
  model.dropout = flags.dropout;
  model.norm = parse_norm(flags.norm);
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
    resolved.dataset =
        open_dataset(name, flags.data_dir, {.image = usual.image, .classes = usual.classes});
    model.image = resolved.dataset->info().image;
    model.classes = resolved.dataset->info().classes;
  }

  OptimizerSpec& optimizer = resolved.recipe.optimizer;
  optimizer = parse_optimizer(flags.optimizer);
  if (flags.momentum >= 0) optimizer.momentum = flags.momentum;
  user_check(optimizer.momentum < 1, "--momentum must be in [0, 1), not {}", optimizer.momentum);
  if (flags.weight_decay >= 0) optimizer.weight_decay = flags.weight_decay;

  flags.resolve_precision(resolved.recipe);
  optimizer.fold = flags.fold;
  optimizer.state_bits = flags.state_bits;
  optimizer.clip_norm = flags.clip_norm;
  optimizer.clip_two_pass = flags.clip_two_pass;
  check_optimizer(optimizer, false);
  resolved.recipe.sparsity = flags.sparsity.spec();

  resolved.recipe.microbatch = flags.microbatch;
  resolved.recipe.allow = parse_tier(flags.allow);
  resolved.recipe.device = flags.device;
  resolved.recipe.on = flags.on;
  if (!flags.memory.empty()) {
    resolved.recipe.memory = flags.memory == "least" ? kLeastMemory : parse_bytes(flags.memory);
  }
  resolved.recipe.planner = !flags.planner.empty()   ? flags.planner
                            : resolved.recipe.memory ? "optimal"
                                                     : "keep_all";
  resolved.recipe.marks = {flags.keep, flags.recompute};
  resolved.recipe.codec = parse_codec_spec(flags.codec);
  resolved.recipe.codec.only = flags.codec_only;
  resolved.recipe.costs = costs_to_read(flags.costs, flags.device);
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
    print_json(
        {{"infeasible", true}, {"min_bytes", infeasible.min_bytes.count}, {"why", infeasible.why}});
  }
  say("thimble: planner {} cannot do with {}: it needs {} ({} bytes); {}; give more --memory, "
      "or try another --planner (`thimble list planners`)\n",
      recipe.planner, to_string(recipe.memory.value_or(Bytes())), to_string(infeasible.min_bytes),
      infeasible.min_bytes.count, infeasible.why);
  return std::nullopt;
}

nlohmann::json summary_of(const PlannedStepProgram& planned) {
  nlohmann::json summary = plan_summary({.device = planned.backend->name(),
                                         .batch = planned.microbatches.batch,
                                         .microbatch = planned.microbatches.rows,
                                         .tier = name_of(planned.tier),
                                         .plan_seconds = planned.plan_seconds},
                                        planned.training->model.graph, priced_as_a_whole(planned));
  summary["codec"] = to_string(planned.codec);
  summary["encoded"] = encoded_json(planned.training->model.graph);
  const Sparsity sparsity = sparsity_of(planned.training->model.graph);
  if (sparsity.elements > 0) {
    summary.update({{"nonzeros", sparsity.nonzeros},
                    {"sparse_elements", sparsity.elements},
                    {"density", sparsity.density()}});
  }
  return summary;
}

std::string batch_text(const PlannedStepProgram& planned) {
  const Microbatches& m = planned.microbatches;
  std::string text = fmt::format("batch {}", m.batch);
  if (m.count() > 1) text += fmt::format(" in microbatches of {}", m.rows);
  if (m.rest > 0) text += fmt::format(", the last of {}", m.rest);
  const Sparsity sparsity = sparsity_of(planned.training->model.graph);
  if (sparsity.elements > 0) {
    text += fmt::format(", {} nonzeros of {} sparse weights (density {:.3g})", sparsity.nonzeros,
                        sparsity.elements, sparsity.density());
  }
  if (planned.tier != Tier::exact) text += fmt::format(" ({})", name_of(planned.tier));
  return text;
}

void print_json(const nlohmann::json& object) { fmt::print("{}\n", json_text(object, 2)); }

}  // namespace thimble
