// The list of everything that a run can be told.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/policy.h"
#include "recipe/list.h"
#include "recipe/recipe.h"
#include "transform/codec.h"

namespace thimble {
namespace {

using nlohmann::json;

constexpr unsigned kAll = matters::graph | matters::bits | matters::time;
constexpr unsigned kNumbers = matters::graph | matters::bits;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
constexpr double kMostReal = 1e30;  // well inside what 32 bits hold

constexpr const char* kWithoutDensity = "without --density, the share of nonzeros";

std::string precision_of(DType storage) {
  return storage == DType::f16 ? "fp16" : storage == DType::bf16 ? "bf16" : "fp32";
}

// The settings that an optimizer brings along; others of the spec stay.
void choose_optimizer(Recipe& recipe, const std::string& name) {
  const OptimizerSpec usual = parse_optimizer(name);
  OptimizerSpec& spec = recipe.optimizer;
  spec.name = usual.name;
  for (const HyperParameter& hyper : hyper_parameters()) spec.*hyper.member = usual.*hyper.member;
  recipe.schedule.rate = usual_rate(usual);
}

void choose_precision(Recipe& recipe, const std::string& name) {
  recipe.model.storage = name == "fp16" ? DType::f16 : name == "bf16" ? DType::bf16 : DType::f32;
  recipe.optimizer.scaling.kind =
      name == "fp16" ? LossScaling::Kind::dynamic : LossScaling::Kind::none;
}

void list_memory(Recipe& recipe, Fields& fields) {
  fields.group("Memory");
  std::optional<Bytes>& memory = recipe.memory;
  Fields budget;
  budget.group("Memory");
  budget.budget("memory", memory, kLeastMemory,
                {.help = "Budget of the arena: 64MiB, 1.5GB, ..., or least",
                 .more = "budget of the arena: `64MiB` (1024s), `6.5MB` (1000s) or plain bytes; "
                         "`least`: as little as the planner can do with",
                 .usual = "none",
                 .technique = "recomputation"});
  const Field plain = std::move(std::move(budget).take().front());
  fields.add({"memory", plain.kind(), plain.group(), [plain] { return plain.get(); },
              [plain, &recipe](const json& value) {
                plain.set(value);
                recipe.planner = recipe.memory ? "optimal" : "keep_all";
              },
              plain.about()});
  fields.spelt(
      "planner", [&recipe] { return recipe.planner; },
      [&recipe](const std::string& name) {
        choose_policy(name);
        recipe.planner = name;
      },
      {.help = "How to meet it, from `thimble list planners`",
       .more = "`keep_all`, `drop_cheap`, `sqrt_segments`, `chen_budget`, `mirror`, "
               "`log_recursive` (`log_recursive:3` cuts at three places at once), or `optimal`: "
               "the fastest found that fits `--memory`; to compare with, `none`, `inplace` and "
               "`sharing` (= `keep_all`), which compute everything once",
       .usual = "optimal; without --memory: keep_all",
       .technique = "recomputation"});
  fields.texts("keep", recipe.marks.keep,
               {.help = "Results always kept, by node name (shell pattern)",
                .more = "results that every planner must keep, by node name (`'*bn2*'`); may be "
                        "repeated or joined by commas; a pattern that matches nothing, or two that "
                        "contradict, is refused",
                .usual = "none",
                .matters = matters::time,
                .technique = "recomputation"});
  fields.texts("recompute", recipe.marks.recompute,
               {.help = "Results always computed again, by node name",
                .usual = "none",
                .matters = matters::time,
                .technique = "recomputation"});
  fields.toggle("fold", recipe.optimizer.fold,
                {.help = "sgd: add gradients straight into the momentum",
                 .more = "`--optimizer sgd` only: gradients are added straight into the momentum, "
                         "so that no gradient tensor exists",
                 .matters = kAll,
                 .technique = "fold"});
  fields.choice("allow", "tier", 3, recipe.allow,
                {.help = "What may become of the numbers: exact, equivalent or approximate",
                 .more = "what a step may do to the numbers, see [tiers](#tiers-and-microbatches); "
                         "beyond it, exit 2",
                 .placeholder = "TIER"});
  CodecSpec& codec = recipe.codec;
  fields.spelt(
      "codec", [&codec] { return to_string(codec); },
      [&codec](const std::string& name) {
        CodecSpec spec = parse_codec_spec(name);
        spec.only = codec.only;
        codec = std::move(spec);
      },
      {.help =
           fmt::format("How activations are kept: none, {}; or auto[:NAME], chosen for --memory "
                       "tensor by tensor, NAME at most (auto: int4)",
                       codec_names()),
       .more = fmt::format("how activations from 1,024 numbers on are kept for the backward pass: "
                           "{}; or `auto`, see [codecs](#codecs)",
                           codec_names()),
       .matters = kAll,
       .technique = "codec",
       .timed = codec.automatic ? "none" : ""});
  fields.texts("codec-only", codec.only,
               {.help = "Results that --codec applies to",
                .more = "only results of these nodes; may be repeated or joined by commas",
                .usual = "all large ones",
                .matters = kAll,
                .technique = "codec",
                .idle = codec.codec == nullptr ? "without --codec" : ""});
  fields.add({"codec-chosen",
              Field::Kind::record,
              "Memory",
              [&codec] {
                if (!codec.chosen) return json();
                json chosen = json::object();
                for (const ValueCodec& entry : *codec.chosen) {
                  chosen[entry.value] = name_of(entry.codec);
                }
                return chosen;
              },
              [&codec](const json& value) {
                codec.chosen.reset();
                if (value.is_null()) return;
                user_check(value.is_object(), "--codec-chosen is a table of values and codecs");
                codec.chosen.emplace();
                for (const auto& [name, entry] : value.items()) {
                  codec.chosen->push_back({name, parse_codec(read_text(entry, "--codec-chosen"))});
                }
              },
              {.help = "What --codec auto chose",
               .matters = matters::bits,
               .technique = "codec",
               .flag = false}});
  fields.text("costs", recipe.costs,
              {.help = "Kernel times: auto (of `thimble calibrate`, where it measured), modelled, "
                       "or a file of it",
               .more = "kernel times to predict with: `auto`, those of "
                       "[`thimble calibrate`](#thimble-calibrate) where it measured; `modelled`, "
                       "none of them; or a file that it wrote",
               .usual = "auto",
               .placeholder = "FILE"});
}

void list_device(Recipe& recipe, Fields& fields) {
  fields.group("Device");
  const std::string not_cuda = recipe.device == "cuda" ? "" : "without --device cuda";
  fields.text("device", recipe.device,
              {.help = "cpu, cuda, or null: plans, runs nothing",
               .more = "`cpu`, `cuda` ([on a GPU](gpu.md)), or `null`, which plans and runs "
                       "nothing"});
  fields.on_off("tf32", recipe.on.tf32,
                {.help = "On a GPU, products of fp32 may round their factors to 10 bits",
                 .matters = matters::time,
                 .idle = not_cuda,
                 .shrugged_at = true});
  fields.whole("streams", recipe.on.streams, {.least = 1, .most = 64},
               {.help = "On a GPU, kernels that may run at the same time",
                .matters = matters::time,
                .idle = not_cuda,
                .shrugged_at = true});
  fields.whole("threads", recipe.on.threads, {.least = 0, .most = 1024},
               {.help = "Threads (0: one per core)",
                .more = "0: one per core; the count changes the rounding, hence the bits"});
}

// Batches by tokens.
void list_tokens(Recipe& recipe, Fields& fields, bool sequences) {
  const bool images = !recipe.model.name.empty() && !recipe.model.build && !sequences;
  const std::string idle =
      images ? fmt::format("with {}, whose records are all alike", recipe.model.name) : "";
  // Names of measured times have them only where they are said.
  const unsigned by_tokens = recipe.tokens > 0 ? kAll : kNumbers;
  const std::string by_rows = !idle.empty() ? idle : recipe.tokens > 0 ? "" : "without --tokens";
  fields.whole(
      "tokens", recipe.tokens, {.least = 1, .most = kMostRows, .open = 0},
      {.help = "Padded tokens of a batch, in place of --batch",
       .more = "padded tokens of a batch, in place of `--batch`: records of like length are "
               "batched together, as many as make so many tokens; see [batches by "
               "tokens](text.md#batches-by-tokens)",
       .usual = "none",
       .matters = by_tokens,
       .idle = idle});
  fields.whole(
      "microbatch-tokens", recipe.microbatch_tokens, {.least = 1, .most = kMostRows, .open = 0},
      {.help = "Padded tokens computed at once",
       .more = "padded tokens computed at once, with `--tokens`; gradients add up in place",
       .usual = "the whole batch",
       .matters = by_tokens,
       .technique = "microbatch",
       .idle = by_rows});
  fields.wholes("lengths", recipe.lengths, {.least = 1, .most = kMostRows},
                {.help = "Lengths that records are padded to",
                 .more = "lengths that records are padded to, each a plan in the one arena: "
                         "`--lengths 16,32,64`",
                 .usual = "with --tokens chosen by the data, 13 at most; else the model's",
                 .matters = recipe.lengths.empty() ? kNumbers : kAll,
                 .idle = idle});
}

void list_model(Recipe& recipe, Fields& fields, bool sequences,
                const std::function<void(Fields&)>& list_own) {
  fields.group("Model");
  ModelOptions& model = recipe.model;
  const std::string by_tokens =
      recipe.tokens > 0 ? "with --tokens, which counts them otherwise" : "";
  fields.whole("batch", model.batch, {.least = 1, .most = kMostRows, .open = 0},
               {.help = "Rows of a batch",
                .more = "rows of a batch: 100 for `mlp` and `wrn`, 32 for `resnet` and `unet`, 64 "
                        "for `lstm`",
                .usual = "the model's",
                .matters = kAll,
                .idle = by_tokens});
  fields.whole("microbatch", recipe.microbatch, {.least = 1, .most = kMostRows, .open = 0},
               {.help = "Rows computed at once",
                .more = "rows computed at once; gradients add up in place and weights move once, "
                        "after the last. `--batch 100 --microbatch 30` is 30, 30, 30 and 10",
                .usual = "the whole batch",
                .matters = kAll,
                .technique = "microbatch",
                .idle = by_tokens.empty() ? "" : by_tokens + "; choose --microbatch-tokens"});
  list_tokens(recipe, fields, sequences);
  fields.whole("classes", model.classes, {.least = 2, .most = kMostWidth, .open = 0},
               {.help = "Classes, where the data do not say",
                .more = "for `plan` without data, `generated` and `idx`",
                .usual = "the data's, else the model's",
                .matters = kAll});
  fields.image(
      "image", model.image,
      {.help = "Image size, where the data do not say",
       .more = "for `plan` without data, and `generated`",
       .usual = "the data's, else the model's",
       .matters = kAll,
       .idle = sequences ? fmt::format("with {}, which reads sequences", model.name) : ""});
  list_own(fields);
  fields.real("label-smoothing", model.label_smoothing, {.least = 0, .most = 1, .below = true},
              {.help = "Share spread over all classes", .placeholder = "P", .matters = kNumbers});
}

void list_hyper_parameter(OptimizerSpec& spec, const HyperParameter& hyper, Fields& fields) {
  static const std::map<std::string_view, std::string> kHelp = {
      {"--momentum", "Momentum; 0 keeps none in memory"},
      {"--beta1", "Decay of the first moment"},
      {"--beta2", "Decay of the second moment"},
      {"--epsilon", "Added to what is divided by"},
      {"--weight-decay", "Weight decay"}};
  double& member = spec.*hyper.member;
  About about = {
      .help = kHelp.at(hyper.flag), .usual = usual_values(hyper.usual), .matters = kNumbers};
  if (!hyper.usual(rule_of(spec))) {
    about.idle = fmt::format("with --optimizer {}, which does not read it", spec.name);
  }
  RealRange range = {.least = 0, .most = 1, .below = true};
  if (hyper.flag == "--momentum") {
    about.matters = kAll;
    about.timed = member > 0 ? "some" : "none";
  } else if (hyper.flag == "--epsilon") {
    range = {.least = 0, .most = 1, .above = true};
  } else if (hyper.flag == "--weight-decay") {
    range = {.least = 0, .most = kMostReal};
  }
  fields.real(hyper.flag.substr(2), member, range, std::move(about));
}

void list_optimizer(Recipe& recipe, Fields& fields) {
  fields.group("Optimizer");
  OptimizerSpec& spec = recipe.optimizer;
  std::vector<std::string> names;
  for (const UpdateRule* rule : all_update_rules()) {
    if (!rule->internal) names.emplace_back(rule->name);
  }
  fields.choice(
      "optimizer", "optimizer", names, [&spec] { return spec.name; },
      [&recipe](const std::string& name) { choose_optimizer(recipe, name); },
      {.help = optimizer_names(),
       .matters = kAll,
       .technique = rule_of(spec).op.empty() ? "" : "factored"});
  for (const HyperParameter& hyper : hyper_parameters()) {
    list_hyper_parameter(spec, hyper, fields);
  }
  fields.choice("decay-on", "choice of weights", 2, spec.decay_on,
                {.help = "Which weights decay: all, or matrices (no biases, no norms)",
                 .more = "which weights decay: `all`, or `matrices`, those with two axes or more: "
                         "no biases, no scales and shifts of normalisations",
                 .matters = kNumbers,
                 .idle = spec.weight_decay > 0 ? "" : "without --weight-decay"});
  fields.whole("state-bits", spec.state_bits, {.least = 8, .most = 32},
               {.help = "Bits a number of optimizer state: 32 or 8",
                .more = "8: momentum and moments of weights from 256 numbers on take a byte each, "
                        "see [optimizer memory](#optimizer-memory)",
                .matters = kAll,
                .technique = "state"});
  fields.real("clip-norm", spec.clip_norm, {.least = 1e-30, .most = kMostReal, .open = 0},
              {.help = "Most that the norm of all gradients may be",
               .more = "scales all gradients of a step so that their common norm is X at most",
               .usual = "any",
               .matters = kAll,
               .timed = spec.clip_norm > 0 ? "on" : "off"});
  fields.toggle("clip-two-pass", spec.clip_two_pass,
                {.help = "Compute gradients twice for --clip-norm, in place of keeping them",
                 .more = "computes gradients twice for that, in place of keeping them until the "
                         "norm is known",
                 .matters = kAll,
                 .technique = "clip"});
}

void list_precision(Recipe& recipe, Fields& fields) {
  fields.group("Precision");
  LossScaling& scaling = recipe.optimizer.scaling;
  fields.choice(
      "precision", "precision", {"fp32", "fp16", "bf16"},
      [&recipe] { return precision_of(recipe.model.storage); },
      [&recipe](const std::string& name) { choose_precision(recipe, name); },
      {.help = "Weights, gradients, momentum and activations: fp32, fp16 or bf16",
       .more = "`fp32`, `fp16` or `bf16`: weights, gradients, momentum and activations; see "
               "[precision](#precision)",
       .matters = kAll,
       .technique = "precision"});
  fields.toggle("master", recipe.model.master,
                {.help = "Weights in fp32, cast where they are used",
                 .more = "16-bit precisions: weights stay in fp32 and are cast where they are used",
                 .matters = kAll,
                 .technique = "precision"});
  fields.choice("rounding", "rounding", 3, recipe.optimizer.rounding,
                {.help = "Updates of 16-bit weights: nearest, stochastic or kahan",
                 .more = "how updated 16-bit weights are rounded: `nearest`, `stochastic` or "
                         "`kahan`",
                 .matters = kAll,
                 .technique = "precision"});
  fields.spelt(
      "loss-scale", [&scaling] { return name_of(scaling); },
      [&scaling](const std::string& text) {
        const LossScaling chosen = parse_loss_scaling(text);
        scaling.kind = chosen.kind;
        if (chosen.kind == LossScaling::Kind::fixed) scaling.start = chosen.start;
      },
      {.help = "dynamic, none, or a number for good",
       .more = "`dynamic`, `none`, or a number for good",
       .usual = "fp16: dynamic; else none",
       .placeholder = "X",
       .matters = kAll,
       .technique = "precision"});
  const std::string idle =
      scaling.kind == LossScaling::Kind::dynamic ? "" : "without a dynamic --loss-scale";
  const auto about = [&](std::string help) {
    return About{
        .help = std::move(help), .matters = matters::bits, .technique = "precision", .idle = idle};
  };
  fields.real("loss-scale-start", scaling.start, {.least = 0, .most = kMostReal, .above = true},
              about("dynamic: the first scale"));
  fields.whole("loss-scale-interval", scaling.growth_interval, {.least = 1},
               about("dynamic: clean steps before it grows"));
  fields.real("loss-scale-growth", scaling.growth, {.least = 1, .most = kMostReal},
              about("dynamic: it grows by this factor"));
  fields.real("loss-scale-backoff", scaling.backoff,
              {.least = 0, .most = 1, .above = true, .below = true},
              about("dynamic: after an overflow it is multiplied by this"));
  fields.real("loss-scale-floor", scaling.floor, {.least = 0, .most = kMostReal, .above = true},
              about("dynamic: an error below this"));
}

void list_sparsity(Recipe& recipe, Fields& fields) {
  fields.group("Sparsity");
  SparsitySpec& spec = recipe.sparsity;
  const bool dense = !spec.enabled();
  const bool stays = spec.method == SparseMethod::fixed;
  const std::string idle = dense ? kWithoutDensity : "";
  const std::string unmoved = dense   ? kWithoutDensity
                              : stays ? "with --sparsity static, where nothing moves"
                                      : "";
  fields.real("density", spec.density, {.least = 0, .most = 1, .above = true, .open = 0},
              {.help = "Share of nonzeros in sparse weights",
               .more = "share of nonzeros in sparse weights, above 0 and 1 at most; see [sparse "
                       "weights](#sparse-weights)",
               .usual = "all are dense",
               .matters = kAll,
               .technique = "sparsity"});
  fields.texts("sparse", spec.weights,
               {.help = "Which ones, by weight name",
                .more = "which weights are sparse, by name (`'group3.*'`); may be repeated or "
                        "joined by commas",
                .usual = "all but stem, shortcuts, norms and the last layer",
                .matters = kAll,
                .technique = "sparsity",
                .idle = idle});
  fields.choice("sparsity", "way to be sparse", 3, spec.method,
                {.help = "How nonzeros move: dynamic, static (never) or magnitude",
                 .more = "how nonzeros move: `dynamic`, `static` (never) or `magnitude`",
                 .matters = matters::bits,
                 .technique = "sparsity",
                 .idle = idle});
  fields.real("prune-threshold", spec.threshold, {.least = 0, .above = true},
              {.help = "dynamic: the first threshold",
               .matters = matters::bits,
               .technique = "sparsity",
               .idle = !unmoved.empty()                         ? unmoved
                       : spec.method == SparseMethod::magnitude ? "with --sparsity magnitude"
                                                                : ""});
  fields.real("prune-target", spec.target, {.least = 0, .above = true},
              {.help = "Nonzeros to move at a time: a number, or a share below 1",
               .more = "how many move at a time: a number, or a share below 1 of all nonzeros",
               .placeholder = "N",
               .matters = matters::bits,
               .technique = "sparsity",
               .idle = unmoved});
  fields.whole("reallocate-every", recipe.reallocate_every, {.least = 1, .open = 0},
               {.help = "Steps between moves of nonzeros",
                .more = "steps between moves of nonzeros; none in the last twentieth of a run",
                .usual = "100; from epochs 25, 80, 140 on 200, 400, 800",
                .matters = matters::bits,
                .technique = "sparsity",
                .idle = unmoved,
                .shrugged_at = !dense,
                .training = true});
}

void list_data(Recipe& recipe, Fields& fields, bool sequences) {
  fields.group("Data");
  DataSpec& data = recipe.data;
  const std::string no_images =
      sequences ? fmt::format("with {}, which reads sequences", recipe.model.name) : "";
  const std::string no_crops = !no_images.empty() ? no_images
                               : data.augment     ? ""
                                                  : "without --augment";
  fields.text("data", data.name,
              {.help = "A name from `thimble list data`",
               .more = "a name from `thimble list data`; see [data](data.md)",
               .usual = "digits; models made for images above 32x32: generated",
               .matters = kNumbers});
  fields.text("data-dir", data.folder,
              {.help = "Folder of the set's files",
               .more = "where the files of `cifar10`, `mnist`, `idx` are",
               .usual = "none",
               .placeholder = "FOLDER"});
  fields.whole("sequences", data.sequences, {.least = 1, .most = kMostRows},
               {.help = "Generated sequences of an epoch",
                .more = "`lstm`: generated sequences of an epoch; a tenth as many are tested on",
                .matters = matters::bits,
                .idle = sequences || recipe.model.name.empty()
                            ? ""
                            : fmt::format("with {}, which reads images", recipe.model.name),
                .training = true});
  fields.seed("seed", recipe.seed,
              {.help = "Seed of everything random",
               .more = "of weights, order, crops, dropout",
               .matters = matters::bits});
  fields.toggle("augment", data.augment,
                {.help = "Random crops and mirror images",
                 .more = "reflect-padded random crops and mirror images",
                 .matters = matters::bits,
                 .idle = no_images,
                 .training = true});
  fields.inverted("no-flip", data.flip,
                  {.help = "With --augment: crops only",
                   .matters = matters::bits,
                   .idle = no_crops,
                   .training = true});
  fields.whole("crop-pad", data.crop_pad, {.least = 0, .most = 64},
               {.help = "With --augment: padding of the crops",
                .matters = matters::bits,
                .idle = no_crops,
                .training = true});
}

void list_schedule(Recipe& recipe, Fields& fields) {
  fields.group("How long, how fast");
  ScheduleSpec& schedule = recipe.schedule;
  const std::string no_steps =
      schedule.kind == RateSchedule::Kind::step ? "" : "without --schedule step";
  fields.real("epochs", schedule.epochs, {.least = 0, .most = 1e6, .above = true},
              {.help = "Passes over the training data",
               .more = "passes over the training data, in whole batches; what is left of an epoch "
                       "waits for the next order",
               .training = true});
  fields.whole("steps", schedule.steps, {.least = 1, .most = 100'000'000, .open = 0},
               {.help = "Training steps, instead of epochs",
                .usual = "those of the epochs",
                .training = true});
  fields.real(
      "lr", schedule.rate, {.least = 0, .most = 3e38},
      {.help = "Learning rate",
       .usual = usual_values([](const UpdateRule& rule) { return std::optional(rule.rate); }),
       .matters = matters::bits,
       .training = true});
  fields.choice("schedule", "schedule", kScheduleKinds, schedule.kind,
                {.help = "constant, step, cosine or inverse-sqrt",
                 .more = "`constant`, `step`, `cosine` (to 0 at the end), `inverse-sqrt`: `--lr` "
                         "times sqrt((W + 1) / (s + 1)) at step s after W of warm-up",
                 .matters = matters::bits,
                 .training = true});
  fields.spans("milestones", schedule.milestones,
               {.help = "step: epochs, or 'N steps', at which the rate drops",
                .usual = "none",
                .matters = matters::bits,
                .idle = no_steps,
                .training = true});
  fields.real("factor", schedule.factor, {.least = 0},
              {.help = "step: what the rate is multiplied by",
               .matters = matters::bits,
               .idle = no_steps,
               .training = true});
  fields.span(
      "warmup", schedule.warmup,
      {.help = "Epochs of linear warm-up, or 'N steps'",
       .more = "epochs of linear warm-up, or `'N steps'`: over W steps, step s (from 0) has "
               "(s + 1) / (W + 1) of `--lr`, and step W, where the schedule begins, all of "
               "it",
       .matters = matters::bits,
       .training = true});
  std::optional<double>& start = schedule.warmup_start;
  fields.add({"warmup-start",
              Field::Kind::value,
              fields.current_group(),
              [&start] { return start ? json(*start) : json(); },
              [&start](const json& value) {
                start.reset();
                if (!value.is_null()) {
                  start = read_real(value, {.least = 0, .most = 3e38}, "--warmup-start");
                }
              },
              {.help = "Learning rate of the first step of a warm-up",
               .usual = "--lr over one more than its steps",
               .placeholder = "X",
               .matters = matters::bits,
               .idle = schedule.warmup.count > 0 ? "" : "without --warmup",
               .training = true}});
}

void list_tests(Recipe& recipe, Fields& fields) {
  fields.group("Checkpoints and tests");
  fields.span(
      "save-every", recipe.save_every,
      {.help = "Epochs between checkpoints, or 'N steps' (0: only at the end)", .training = true});
  fields.whole("keep-checkpoints", recipe.keep_checkpoints, {.least = 1, .most = 10'000},
               {.help = "How many of the last checkpoints stay",
                .more = "how many of the last checkpoints stay, for `thimble average`",
                .training = true});
  fields.span("eval-every", recipe.evaluate_every,
              {.help = "Epochs between tests, or 'N steps' (0: only at the end)",
               .idle = recipe.evaluate ? "" : "with --no-eval",
               .training = true});
  fields.inverted("no-eval", recipe.evaluate,
                  {.help = "No tests, not even at the end", .training = true});
}

}  // namespace

void list_fields(Recipe& recipe, Fields& fields, bool sequences,
                 const std::function<void(Fields&)>& list_own) {
  fields.add({"model",
              Field::Kind::value,
              "",
              [&recipe] { return recipe.model.name.empty() ? json() : json(recipe.model.name); },
              [&recipe](const json& value) {
                const std::string name = read_text(value, "the model");
                if (name == recipe.model.name) return;
                recipe.model.name = name;
                recipe.model.own.reset();
                split_name(recipe.model);
                if (!recipe.model.build) find_model_family(recipe.model.name);
              },
              {.help = "A name from `thimble list models`, or a recipe file (.toml)",
               .matters = kAll,
               .flag = false}});
  list_memory(recipe, fields);
  list_device(recipe, fields);
  list_model(recipe, fields, sequences, list_own);
  list_optimizer(recipe, fields);
  list_precision(recipe, fields);
  list_sparsity(recipe, fields);
  list_data(recipe, fields, sequences);
  list_schedule(recipe, fields);
  list_tests(recipe, fields);
}

std::vector<Field> fields_of(Recipe& recipe) {
  Fields fields;
  ModelOptions& model = recipe.model;
  split_name(model);
  const bool known = !model.name.empty() && !model.build;
  const bool sequences = known && find_model_family(model.name).intake != &kImageIntake;
  list_fields(recipe, fields, sequences, [&](Fields& list) {
    if (known || model.build) list_own_fields(model, list);
  });
  return std::move(fields).take();
}

std::string timed_text(Recipe recipe) {
  std::string text;
  for_each_field(recipe, [&](const Field& field) {
    if (!field.matters_for(matters::time)) return;
    const std::string value = field.about().timed.empty() ? field.text() : field.about().timed;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name(), value);
  });
  return text;
}

}  // namespace thimble
