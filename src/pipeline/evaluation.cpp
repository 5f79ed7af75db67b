#include <algorithm>

#include "base/error.h"
#include "execute/costs.h"
#include "pipeline/fine_tuning.h"
#include "pipeline/pipeline.h"

namespace thimble {
namespace {

// Tries the most rows first and halves them until they fit, in multiples of `unit`: everything is
// computed once, but for a single unit that only fits with recomputation, as a step of few trained
// weights may have been planned. Null: not even that fits.
std::unique_ptr<PlannedStep> plan_between(const PlannedTraining& training, StepShape shape,
                                          int64_t unit) {
  const PlannedStep& first = training.full();
  const std::string policies[] = {std::string(keep_all_policy()), std::string(budget_policy())};
  const auto units = [&](int64_t rows) { return (rows + unit - 1) / unit; };
  for (int64_t count = units(shape.rows);; count = (count + 1) / 2) {
    shape.rows = count * unit;
    Model model = build_model(options_for(first.model.options, shape));
    apply(training.recipe.tuning, model);
    sparsify(model.graph, training.recipe.sparsity);
    shard_weights(model.graph, training.recipe.ranks, shard_granularity(training.recipe.optimizer));
    auto step = std::make_unique<PlannedStep>();
    step->shape = shape;
    step->model = std::move(model);
    step->costs = gather_costs(step->model.graph, training.backend());
    const size_t tried = count == 1 ? 2 : 1;
    if (plan_into_arena_of(first, *step, std::span(policies).first(tried), 1)) return step;
    if (count == 1) return nullptr;
  }
}

// Of every length that is trained on, the longest first; `refuse` says why where nothing fits.
template <class Refuse>
std::vector<std::unique_ptr<PlannedStep>> plan_lengths(const PlannedTraining& training,
                                                       Purpose purpose, int64_t unit,
                                                       const Refuse& refuse) {
  std::vector<std::unique_ptr<PlannedStep>> all;
  for (const auto& trained : training.steps) {
    StepShape shape = trained->shape;
    if (shape.rows == microbatches_of(training.recipe, shape.length).rest) continue;
    shape.purpose = purpose;
    all.push_back(plan_between(training, shape, unit));
    if (all.back() == nullptr) refuse(shape.length);
  }
  return all;
}

}  // namespace

std::vector<std::unique_ptr<PlannedStep>> plan_evaluation(const PlannedTraining& training) {
  return plan_lengths(training, Purpose::evaluation, 1, [&](int64_t) {
    user_error(
        "tests of {} do not fit the arena of {} that training takes; give --memory more, or "
        "leave them out (--no-eval)",
        training.recipe.model.name, to_string(training.plan().arena));
  });
}

std::vector<std::unique_ptr<PlannedStep>> plan_generation(const PlannedTraining& training,
                                                          int64_t beam) {
  return plan_lengths(training, Purpose::generation, beam, [&](int64_t length) {
    user_error(
        "a beam of {} beginnings of {} tokens does not fit the arena of {} that the run was "
        "trained in; choose a smaller --beam",
        beam, length, to_string(training.plan().arena));
  });
}

std::vector<std::unique_ptr<PlannedStep>> plan_sampling(const PlannedTraining& training) {
  std::vector<std::unique_ptr<PlannedStep>> all;
  const int64_t longest = training.full().model.options.length;
  constexpr int64_t kShortest = 32;
  for (int64_t length = kShortest;; length *= 2) {
    const StepShape shape = {
        .rows = 1, .length = std::min(length, longest), .purpose = Purpose::generation};
    all.push_back(plan_between(training, shape, 1));
    internal_check(all.back() != nullptr, "one row does not fit where training does");
    if (length >= longest) return all;
  }
}

}  // namespace thimble
