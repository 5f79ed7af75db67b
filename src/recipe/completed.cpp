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

// Of batches by tokens, those of records of that length: how many rows they have is the same whatever is
// computed at once.
Microbatches microbatches_of_length(const Recipe& recipe, int64_t length) {
  const int64_t ranks = recipe.ranks.count;
  const int64_t share = std::max<int64_t>(1, recipe.tokens / ranks / length);
  const int64_t most = recipe.microbatch_tokens > 0
                           ? std::max<int64_t>(1, recipe.microbatch_tokens / length)
                           : share;
  return split_evenly(share * ranks, most, recipe.ranks.count);
}

}  // namespace

std::vector<StepShape> token_batches(const Recipe& recipe) {
  if (recipe.tokens == 0) return {};
  std::vector<int64_t> lengths = recipe.lengths;
  if (lengths.empty()) {
    ModelOptions model = recipe.model;
    complete_model(model);
    lengths.push_back(std::max<int64_t>(1, model.length));
  }
  std::ranges::sort(lengths, std::greater());
  std::vector<StepShape> batches;
  for (const int64_t length : lengths) {
    user_check(length >= 1, "a length is 1 at least, not {}", length);
    const Microbatches all = microbatches_of_length(recipe, length);
    batches.push_back({.rows = all.batch, .length = length});
  }
  return batches;
}

Microbatches microbatches_of(const Recipe& recipe) {
  if (recipe.tokens > 0) return microbatches_of(recipe, token_batches(recipe).front().length);
  ModelOptions model = recipe.model;
  complete_model(model);
  return split_batch(model.batch, recipe.microbatch, recipe.ranks.count);
}

Microbatches microbatches_of(const Recipe& recipe, int64_t length) {
  return recipe.tokens > 0 ? microbatches_of_length(recipe, length) : microbatches_of(recipe);
}

int most_microbatches(const Recipe& recipe) {
  if (recipe.tokens == 0) return microbatches_of(recipe).count();
  int most = 1;
  for (const StepShape& batch : token_batches(recipe)) {
    most = std::max(most, microbatches_of_length(recipe, batch.length).count());
  }
  return most;
}

Recipe completed(Recipe requested, const Backend& on) {
  complete_model(requested.model, on.has_device_memory());
  if (requested.tokens == 0) requested.microbatch = microbatches_of(requested).rows;
  return requested;
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
  const AdapterSpec& adapters = recipe.tuning.adapters;
  user_check(!adapters.enabled() || !recipe.sparsity.enabled(),
             "--lora trains small dense matrices alone; leave --density out");
  user_check(!adapters.enabled() || !recipe.model.master,
             "--lora keeps its adapters in fp32 by itself; leave --master out");
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
  check_optimizer(optimizer, most_microbatches(recipe) > recipe.ranks.count);
  if (recipe.sparsity.enabled()) check_sparsity(recipe.sparsity);
}

}  // namespace thimble
