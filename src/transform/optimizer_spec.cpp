// Settings of an optimizer: names, usual values, and combinations that are refused.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "transform/optimizer.h"

namespace thimble {
namespace {

using Usual = std::optional<double> (*)(const UpdateRule& rule);

// In the order in which sentences name them.
constexpr std::array<HyperParameter, 5> kHyperParameters = {{
    {"--momentum", "momentum", &OptimizerSpec::momentum,
     [](const UpdateRule& rule) { return rule.momentum; }},
    {"--beta1", "beta1", &OptimizerSpec::beta1, [](const UpdateRule& rule) { return rule.beta1; }},
    {"--beta2", "beta2", &OptimizerSpec::beta2, [](const UpdateRule& rule) { return rule.beta2; }},
    {"--epsilon", "epsilon", &OptimizerSpec::epsilon,
     [](const UpdateRule& rule) { return rule.epsilon; }},
    {"--weight-decay", "weight_decay", &OptimizerSpec::weight_decay,
     [](const UpdateRule& rule) { return std::optional(rule.weight_decay); }},
}};

template <class Wanted>
std::vector<std::string_view> names_of_rules(const Wanted& wanted) {
  std::vector<std::string_view> names;
  for (const UpdateRule* rule : all_update_rules()) {
    if (!rule->internal && wanted(*rule)) names.push_back(rule->name);
  }
  return names;
}

void check_hyper_parameters(const OptimizerSpec& spec, const UpdateRule& rule) {
  for (const HyperParameter& hyper : kHyperParameters) {
    const double value = spec.*hyper.member;
    user_check(
        hyper.usual(rule) || value == OptimizerSpec{}.*hyper.member,
        "{} says nothing to {}; choose --optimizer {}, or leave it out", hyper.flag, spec.name,
        fmt::join(
            names_of_rules([&](const UpdateRule& other) { return hyper.usual(other).has_value(); }),
            " or "));
  }
  const auto share = [](std::string_view flag, double value) {
    user_check(value >= 0 && value < 1, "{} must be in [0, 1), not {}", flag, value);
  };
  share("--momentum", spec.momentum);
  share("--beta1", spec.beta1);
  share("--beta2", spec.beta2);
  user_check(std::isfinite(spec.epsilon) && spec.epsilon > 0,
             "--epsilon is added to what is divided by, so that it must be above 0, not {}",
             spec.epsilon);
  user_check(std::isfinite(spec.weight_decay) && spec.weight_decay >= 0,
             "--weight-decay cannot be {}; choose 0 or a number above it", spec.weight_decay);
}

}  // namespace

std::span<const HyperParameter> hyper_parameters() { return kHyperParameters; }

std::string optimizer_names() {
  return fmt::format("{}", fmt::join(names_of_rules([](const UpdateRule&) { return true; }), ", "));
}

std::string usual_values(Usual usual) {
  std::vector<std::pair<double, std::vector<std::string_view>>> groups;  // by value
  for (const UpdateRule* rule : all_update_rules()) {
    const std::optional<double> value = rule->internal ? std::nullopt : usual(*rule);
    if (!value) continue;
    auto group = std::ranges::find(groups, *value, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {*value, {}});
    group->second.push_back(rule->name);
  }
  std::string text;
  for (const auto& [value, names] : groups) {
    text += fmt::format("{}{:g}", text.empty() ? "" : "; ", value);
    if (groups.size() > 1) text += fmt::format(" for {}", fmt::join(names, ", "));
  }
  return text;
}

double usual_rate(const OptimizerSpec& spec) { return rule_of(spec).rate; }

const UpdateRule& rule_of(const OptimizerSpec& spec) {
  const UpdateRule* const rule = find_update_rule(spec.name);
  internal_check(rule != nullptr && !rule->internal, "an optimizer without a rule");
  return *rule;
}

OptimizerSpec parse_optimizer(std::string_view name) {
  const UpdateRule* const rule = find_update_rule(name);
  user_check(rule != nullptr && !rule->internal, "there is no optimizer '{}'; known: {}", name,
             optimizer_names());
  OptimizerSpec spec;
  spec.name = rule->name;
  for (const HyperParameter& hyper : kHyperParameters) {
    if (const std::optional<double> usual = hyper.usual(*rule)) spec.*hyper.member = *usual;
  }
  return spec;
}

void check_fold(const OptimizerSpec& spec) {
  if (!spec.fold) return;
  user_check(
      rule_of(spec).folds,
      "gradients cannot be folded into the state of {}, whose update needs them apart; choose "
      "--optimizer {} (heavy ball), or leave --fold out",
      spec.name,
      fmt::join(names_of_rules([](const UpdateRule& rule) { return rule.folds; }), " or "));
  user_check(
      spec.scaling.kind != LossScaling::Kind::dynamic,
      "a step with folded gradients cannot be skipped, since the momentum has changed already "
      "when they overflow; choose a --loss-scale that is a number, --precision bf16, or leave "
      "--fold out");
  user_check(spec.momentum > 0,
             "without momentum there is nothing to fold gradients into; give --momentum, or leave "
             "--fold out");
}

void check_optimizer(const OptimizerSpec& spec, bool several_microbatches) {
  const UpdateRule* const known = find_update_rule(spec.name);
  if (known == nullptr || known->internal) parse_optimizer(spec.name);  // says which there are
  const UpdateRule& rule = *known;
  check_hyper_parameters(spec, rule);
  check_fold(spec);
  user_check(spec.rounding != Rounding::kahan || rule.op.empty(),
             "{} keeps nothing of what rounding leaves over; choose --rounding stochastic",
             spec.name);
  user_check(spec.state_bits == 32 || spec.state_bits == 16 || spec.state_bits == 8,
             "optimizer state takes 32 bits a number, 16 or 8, not {}; choose --state-bits 8, 16 "
             "or 32",
             spec.state_bits);
  user_check(spec.state_bits != 16 || !spec.fold,
             "gradients that are folded into a momentum are too small for 16 bits; choose "
             "--state-bits 8 or 32, or leave --fold out");
  if (spec.state_bits < 32) {
    user_check(rule.op.empty(),
               "{} keeps too little state to be worth encoding; leave --state-bits out, or choose "
               "--optimizer adam",
               spec.name);
    user_check(
        !rule.momentum || spec.momentum > 0,
        "without momentum there is no state to keep in fewer bits; give --momentum, or leave "
        "--state-bits out");
  }
  user_check(std::isfinite(spec.clip_norm) && spec.clip_norm >= 0,
             "gradients are clipped to a norm above 0, not {}", spec.clip_norm);
  if (spec.clip_two_pass) {
    user_check(spec.clip_norm > 0, "--clip-two-pass is a way to clip: give --clip-norm as well");
    user_check(!several_microbatches,
               "the norm of a step in microbatches is known after the last of them, too late for a "
               "second pass over the first; leave --clip-two-pass out, or --microbatch");
  }
  user_check(spec.clip_norm == 0 || spec.clip_two_pass || !spec.fold,
             "gradients that are clipped by their common norm must all be there before the first "
             "goes into the momentum; choose --microbatch without --fold, or --clip-two-pass "
             "without --microbatch");
}

}  // namespace thimble
