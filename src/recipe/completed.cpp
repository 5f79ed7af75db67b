// From what was said to everything: defaults, and what does not go together.
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "comm/interconnect.h"
#include "recipe/recipe.h"

namespace thimble {

int64_t ScheduleSpec::total_steps(int64_t steps_per_epoch) const {
  return steps > 0 ? steps : Span{epochs}.steps(steps_per_epoch);
}

RateSchedule ScheduleSpec::in_steps(int64_t steps_per_epoch) const {
  RateSchedule result = {.kind = kind,
                         .base = rate,
                         .warmup_steps = warmup.steps(steps_per_epoch),
                         .warmup_start = warmup_start,
                         .total_steps = total_steps(steps_per_epoch),
                         .factor = factor};
  for (const Span& at : milestones) result.milestones.push_back(at.steps(steps_per_epoch));
  return result;
}

namespace {

int64_t tokens_at_once(const Recipe& recipe) {
  if (recipe.microbatch_tokens > 0) return recipe.microbatch_tokens;
  return std::max<int64_t>(1, recipe.tokens / recipe.ranks.count);
}

}  // namespace

std::vector<VariantShape> token_batches(const Recipe& recipe) {
  if (recipe.tokens == 0) return {};
  std::vector<int64_t> lengths = recipe.lengths;
  if (lengths.empty()) {
    ModelOptions model = recipe.model;
    complete_model(model);
    lengths.push_back(std::max<int64_t>(1, model.length));
  }
  std::ranges::sort(lengths, std::greater());
  const int64_t at_once = tokens_at_once(recipe);
  const int64_t count = (recipe.tokens + at_once - 1) / at_once;
  std::vector<VariantShape> batches;
  for (const int64_t length : lengths) {
    batches.push_back({.rows = count * std::max<int64_t>(1, at_once / length), .length = length});
  }
  return batches;
}

Microbatches microbatches_of(const Recipe& recipe) {
  const std::vector<VariantShape> batches = token_batches(recipe);
  if (!batches.empty()) {
    const int64_t at_once = tokens_at_once(recipe);
    const int64_t rows = batches.front().rows;
    return split_batch(rows, rows / ((recipe.tokens + at_once - 1) / at_once), recipe.ranks.count);
  }
  ModelOptions model = recipe.model;
  complete_model(model);
  return split_batch(model.batch, recipe.microbatch, recipe.ranks.count);
}

Recipe completed(Recipe typed, const Backend& on) {
  complete_model(typed.model, on.remote());
  if (typed.tokens == 0) typed.microbatch = microbatches_of(typed).rows;
  return typed;
}

void check(const Recipe& recipe) {
  // A member that was written to is judged as if it had been typed.
  Recipe copy = recipe;
  std::vector<nlohmann::json> values;
  const std::vector<Field> fields = fields_of(copy);
  for (const Field& field : fields) values.push_back(field.get());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!values[i].is_null()) fields[i].set(values[i]);
  }

  user_check(recipe.tokens == 0 || recipe.microbatch_tokens <= recipe.tokens,
             "--microbatch-tokens {} is more than the {} of a whole batch (--tokens)",
             recipe.microbatch_tokens, recipe.tokens);
  const OptimizerSpec& optimizer = recipe.optimizer;
  const bool small = recipe.model.storage != DType::f32;
  user_check(small || !recipe.model.master,
             "fp32 weights are their own masters; leave --master out");
  user_check(optimizer.rounding == Rounding::nearest || (small && !recipe.model.master),
             "--rounding {} is for 16-bit weights; choose --precision fp16 or bf16 without "
             "--master",
             name_of(optimizer.rounding));
  if (!recipe.interconnect.empty()) parse_interconnect(recipe.interconnect);
  user_check(recipe.model.norm != Norm::synced || recipe.ranks.several(),
             "--norm synced is batch norm over the rows of several ranks; choose --norm batch, or "
             "--ranks");
  if (optimizer.scaling.kind == LossScaling::Kind::dynamic) check_loss_scaling(optimizer.scaling);
  if (!recipe.data.name.empty()) dataset_named(recipe.data.name);
  check_optimizer(optimizer, microbatches_of(recipe).turns() > 1);
  if (recipe.sparsity.enabled()) check_sparsity(recipe.sparsity);
}

}  // namespace thimble
