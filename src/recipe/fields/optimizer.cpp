// How weights are updated, in what precision, and which of them there are.
#include <fmt/format.h>

#include <map>

#include "recipe/fields/field_groups.h"

namespace thimble {
namespace {

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

void list_hyper_parameter(OptimizerSpec& spec, const HyperParameter& hyper, Fields& fields) {
  static const std::map<std::string_view, std::string> kHelp = {
      {"--momentum", "Momentum; 0 keeps none in memory"},
      {"--beta1", "Decay of the first moment"},
      {"--beta2", "Decay of the second moment"},
      {"--epsilon", "Added to what is divided by"},
      {"--weight-decay", "Weight decay"}};
  double& member = spec.*hyper.member;
  About about = {
      .help = kHelp.at(hyper.flag), .usual = usual_values(hyper.usual), .affects = kNumbers};
  if (!hyper.usual(rule_of(spec))) {
    about.unused_reason = fmt::format("with --optimizer {}, which does not read it", spec.name);
  }
  RealRange range = {.least = 0, .most = 1, .below = true};
  if (hyper.flag == "--momentum") {
    about.affects = kAll;
    about.timed = member > 0 ? "some" : "none";
  } else if (hyper.flag == "--epsilon") {
    range = {.least = 0, .most = 1, .above = true};
  } else if (hyper.flag == "--weight-decay") {
    range = {.least = 0, .most = kMostReal};
  }
  fields.real(hyper.flag.substr(2), member, range, std::move(about));
}

}  // namespace

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
       .affects = kAll,
       .technique = rule_of(spec).op.empty() ? "" : "factored"});
  for (const HyperParameter& hyper : hyper_parameters()) {
    list_hyper_parameter(spec, hyper, fields);
  }
  fields.choice("decay-on", "choice of weights", 2, spec.decay_on,
                {.help = "Which weights decay: all, or matrices (no biases, no norms)",
                 .more = "which weights decay: `all`, or `matrices`, those with two axes or more: "
                         "no biases, no scales and shifts of normalisations",
                 .affects = kNumbers,
                 .unused_reason = spec.weight_decay > 0 ? "" : "without --weight-decay"});
  fields.whole("state-bits", spec.state_bits, {.least = 8, .most = 32},
               {.help = "Bits a number of optimizer state: 32, 16 or 8",
                .more = "8: momentum and moments of weights from 256 numbers on take a byte each; "
                        "16: bf16, rounded at random. See [optimizer memory](#optimizer-memory)",
                .affects = kAll,
                .technique = "state"});
  fields.real("clip-norm", spec.clip_norm, {.least = 1e-30, .most = kMostReal, .open = 0},
              {.help = "Most that the norm of all gradients may be",
               .more = "scales all gradients of a step so that their common norm is X at most",
               .usual = "any",
               .affects = kAll,
               .timed = spec.clip_norm > 0 ? "on" : "off"});
  fields.toggle("clip-two-pass", spec.clip_two_pass,
                {.help = "Compute gradients twice for --clip-norm, in place of keeping them",
                 .more = "computes gradients twice for that, in place of keeping them until the "
                         "norm is known",
                 .affects = kAll,
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
       .affects = kAll,
       .technique = "precision"});
  fields.toggle("master", recipe.model.master,
                {.help = "Weights in fp32, cast where they are used",
                 .more = "16-bit precisions: weights stay in fp32 and are cast where they are used",
                 .affects = kAll,
                 .technique = "precision"});
  fields.choice("rounding", "rounding", 3, recipe.optimizer.rounding,
                {.help = "Updates of 16-bit weights: nearest, stochastic or kahan",
                 .more = "how updated 16-bit weights are rounded: `nearest`, `stochastic` or "
                         "`kahan`",
                 .affects = kAll,
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
       .affects = kAll,
       .technique = "precision"});
  const std::string unused_reason =
      scaling.kind == LossScaling::Kind::dynamic ? "" : "without a dynamic --loss-scale";
  const auto about = [&](std::string help) {
    return About{.help = std::move(help),
                 .affects = affects::numerics,
                 .technique = "precision",
                 .unused_reason = unused_reason};
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
  const std::string unused_reason = dense ? kWithoutDensity : "";
  const std::string unmoved = dense   ? kWithoutDensity
                              : stays ? "with --sparsity static, where nothing moves"
                                      : "";
  fields.real("density", spec.density, {.least = 0, .most = 1, .above = true, .open = 0},
              {.help = "Share of nonzeros in sparse weights",
               .more = "share of nonzeros in sparse weights, above 0 and 1 at most; see [sparse "
                       "weights](#sparse-weights)",
               .usual = "all are dense",
               .affects = kAll,
               .technique = "sparsity"});
  fields.texts("sparse", spec.weights,
               {.help = "Which ones, by weight name",
                .more = "which weights are sparse, by name (`'group3.*'`); may be repeated or "
                        "joined by commas",
                .usual = "all but stem, shortcuts, norms and the last layer",
                .affects = kAll,
                .technique = "sparsity",
                .unused_reason = unused_reason});
  fields.choice("sparsity", "way to be sparse", 3, spec.method,
                {.help = "How nonzeros move: dynamic, static (never) or magnitude",
                 .more = "how nonzeros move: `dynamic`, `static` (never) or `magnitude`",
                 .affects = affects::numerics,
                 .technique = "sparsity",
                 .unused_reason = unused_reason});
  fields.real(
      "prune-threshold", spec.threshold, {.least = 0, .above = true},
      {.help = "dynamic: the first threshold",
       .affects = affects::numerics,
       .technique = "sparsity",
       .unused_reason = !unmoved.empty()                         ? unmoved
                        : spec.method == SparseMethod::magnitude ? "with --sparsity magnitude"
                                                                 : ""});
  fields.real("prune-target", spec.target, {.least = 0, .above = true},
              {.help = "Nonzeros to move at a time: a number, or a share below 1",
               .more = "how many move at a time: a number, or a share below 1 of all nonzeros",
               .placeholder = "N",
               .affects = affects::numerics,
               .technique = "sparsity",
               .unused_reason = unmoved});
  fields.whole("reallocate-every", recipe.reallocate_every, {.least = 1, .open = 0},
               {.help = "Steps between moves of nonzeros",
                .more = "steps between moves of nonzeros; none in the last twentieth of a run",
                .usual = "100; from epochs 25, 80, 140 on 200, 400, 800",
                .affects = affects::numerics,
                .technique = "sparsity",
                .unused_reason = unmoved,
                .warn_if_unused = !dense,
                .training = true});
}

}  // namespace thimble
