#include "pipeline/text_generation.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "base/error.h"
#include "execute/costs.h"
#include "model/kv_cache.h"
#include "model/next_token.h"
#include "pipeline/fine_tuning.h"
#include "plan/make_plan.h"
#include "plan/verify/verify_plan.h"
#include "transform/sparsify.h"

namespace thimble {
namespace {

// Tokens of a chunk: a prompt is computed by the longest that fit, an answer one by one.
constexpr std::array<int64_t, 4> kChunks = {256, 64, 16, 1};
constexpr int64_t kShortestText = 32;  // of steps without a cache

class Planner {
 public:
  Planner(PlannedGeneration& all, std::optional<Bytes> budget) : all_(all), budget_(budget) {}

  // Steps of these lengths, the longest first, in the arena of the first.
  std::optional<Infeasible> plan(const std::vector<int64_t>& lengths, const ModelOptions& options) {
    all_.steps.clear();
    for (const int64_t length : lengths) {
      auto step = step_of(options, {.rows = 1, .length = length, .purpose = Purpose::generation});
      if (all_.steps.empty()) {
        if (auto none = plan_alone(*step)) return none;
        all_.steps.push_back(std::move(step));
        continue;
      }
      const std::string policy(keep_all_policy());
      // A longer chunk serves where a shorter one does not fit.
      if (plan_into_arena_of(all_.full(), *step, {&policy, 1}, 1)) {
        all_.steps.push_back(std::move(step));
      }
    }
    return std::nullopt;
  }

 private:
  std::unique_ptr<PlannedStep> step_of(const ModelOptions& options, const StepShape& shape) const {
    auto step = std::make_unique<PlannedStep>();
    step->recipe = all_.recipe;
    step->shape = shape;
    step->model = build_model(options_for(options, shape));
    logits_of_text(step->model);
    apply(all_.recipe.tuning, step->model);
    sparsify(step->model.graph, all_.recipe.sparsity);
    step->costs = gather_costs(step->model.graph, all_.backend());
    return step;
  }

  std::optional<Infeasible> plan_alone(PlannedStep& step) const {
    PlanResult planned =
        make_plan({.graph = step.model.graph, .costs = step.costs, .budget = budget_});
    if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
    step.plan = std::get<Plan>(std::move(planned));
    verify_plan(step.model.graph, step.costs, step.plan);
    return std::nullopt;
  }

  PlannedGeneration& all_;
  const std::optional<Bytes> budget_;
};

// Chunks of at most so many tokens.
std::vector<int64_t> chunks_up_to(int64_t most, int64_t context) {
  std::vector<int64_t> chunks;
  for (const int64_t chunk : kChunks) {
    if (chunk <= most && chunk <= context) chunks.push_back(chunk);
  }
  return chunks;
}

std::vector<int64_t> doubling_lengths(int64_t context) {
  std::vector<int64_t> lengths = {context};
  for (int64_t length = kShortestText; length < context; length *= 2) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end(), std::greater());
  return lengths;
}

// The options of steps with a cache of the context; none: the family has none.
std::optional<ModelOptions> cached_options(const PlannedGeneration& all) {
  ModelOptions options = all.recipe.model;
  Fields list;
  list_own_fields(options, list);
  const std::vector<Field> fields = std::move(list).take();
  const Field* const cache = find_field(fields, kCacheField);
  if (cache == nullptr) return std::nullopt;
  cache->set(nlohmann::json(all.context));
  return options;
}

std::optional<Infeasible> plan_cached(Planner& planner, PlannedGeneration& all,
                                      const ModelOptions& options, bool least) {
  std::optional<Infeasible> none;
  for (const int64_t most : kChunks) {
    if (most > all.context || (least && most > 1)) continue;
    none = planner.plan(chunks_up_to(most, all.context), options);
    if (none) continue;
    all.cache = find_kv_cache(all.full().model.graph).bytes;
    return std::nullopt;
  }
  return none;
}

// Its sentence says all.
Infeasible refusal(const PlannedGeneration& all, const Infeasible& none) {
  return {none.min_bytes,
          fmt::format("{} continues a text of {} tokens in no less than {} ({} bytes), more than "
                      "the budget of {}; give --memory more, or a shorter --context",
                      all.recipe.model.name, all.context, to_string(none.min_bytes),
                      none.min_bytes.count, to_string(*all.recipe.memory))};
}

}  // namespace

ValueId logits_of_text(const Model& model) {
  const auto found = std::ranges::find(model.outputs, "logits", &Output::name);
  const bool goes_on = model.query_positions.valid() && model.feeds.size() == 1 &&
                       model.feeds.front().field == "tokens" && found != model.outputs.end();
  user_check(goes_on, "{} does not go on with a text; choose a run of gpt or hf:FOLDER",
             model.options.name);
  return found->value;
}

std::variant<PlannedGeneration, Infeasible> plan_text_generation(const Recipe& recipe,
                                                                 std::shared_ptr<Machine> machine,
                                                                 const TextGeneration& asked) {
  PlannedGeneration all = {.recipe = recipe, .machine = std::move(machine)};
  ModelOptions& options = all.recipe.model;
  all.recipe.ranks = {};
  const bool on_gpu = all.backend().has_device_memory();
  complete_model(options, on_gpu);
  if (asked.context > 0 && asked.context != options.length) {
    options.length = asked.context;
    complete_model(options, on_gpu);
  }
  all.context = options.length;
  const bool least = recipe.memory == kLeastMemory;
  internal_check(recipe.memory != kAutomaticMemory, "plan_text_generation: a budget that is open");
  Planner planner(all, least ? std::nullopt : recipe.memory);
  const auto cached = cached_options(all);
  std::optional<Infeasible> none;  // with a cache
  if (asked.cache != KvCache::off && cached) {
    none = plan_cached(planner, all, *cached, least);
    if (!none) return all;
    if (asked.cache == KvCache::on) return refusal(all, *none);
    all.note = fmt::format(
        "a KV cache of {} tokens and the weights take {}, more than the budget of {}: the whole "
        "text "
        "is recomputed for every token; give --memory more, or a shorter --context",
        all.context, to_string(none->min_bytes), to_string(*recipe.memory));
  }
  if (const auto whole = planner.plan(doubling_lengths(all.context), options)) {
    return refusal(all, none && none->min_bytes < whole->min_bytes ? *none : *whole);
  }
  return all;
}

}  // namespace thimble
