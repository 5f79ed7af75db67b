#include "pipeline/encodings.h"

#include <algorithm>

#include "pipeline/pricing.h"
#include "plan/search/recompute_groups.h"
#include "plan/search/rewrite_choice.h"
#include "transform/codec_ladder.h"

namespace thimble {

std::vector<EncodedStep> encoded_steps(const Recipe& recipe, Backend& backend) {
  return encoded_steps(recipe, step_shapes(recipe).front(), backend);
}

std::vector<EncodedStep> encoded_steps(const Recipe& recipe, const VariantShape& shape,
                                       Backend& backend) {
  Recipe coded = recipe;
  coded.codec.chosen.reset();
  const auto make = [&] {
    EncodedStep step = {
        coded.codec, 0, std::make_unique<TrainingGraph>(make_graph(coded, shape)), {}};
    step.costs = costs_of(recipe, step.training->model.graph, backend);
    return step;
  };
  const EncodedStep plain = make();
  const Graph& graph = plain.training->model.graph;
  const std::vector<Encodable> encodable = find_encodable(graph, recipe.codec);
  std::vector<ValueId> values;
  for (const Encodable& entry : encodable) values.push_back(entry.value);

  constexpr size_t kNodes =
      3'000;  // in all graphs together, so that large ones are planned in time
  const size_t most = std::clamp<size_t>(kNodes / graph.nodes.size(), 6, 16);
  std::vector<EncodedStep> steps;
  for (Encoding& encoding :
       encodings_to_try(graph, recipe.codec, recipe.allow, encodable,
                        groups_by_recompute_time(graph, plain.costs, values), most)) {
    coded.codec.chosen = std::move(encoding.values);
    steps.push_back(make());
    steps.back().harm = encoding.harm;
  }
  return steps;
}

PlanResult plan_encoded(const Recipe& recipe, Backend& backend, Variant& full, CodecSpec& codec) {
  std::vector<EncodedStep> steps = encoded_steps(recipe, full.shape, backend);
  allowed_tier(recipe, steps.front().training->model.graph, steps.front().codec);
  std::vector<RewriteChoice::Rewrite> rewrites;
  for (const EncodedStep& step : steps) {
    rewrites.push_back(
        {request_for(recipe, full.shape, step.training->model.graph, step.costs), step.harm});
  }
  RewriteChoice choice(rewrites);
  const RewriteChoice::Pick pick = choice.choose(recipe.memory);
  PlanResult planned = choice.plan(pick, recipe.memory);
  EncodedStep& chosen = steps[pick.rewrite];
  codec = std::move(chosen.codec);
  full.model = std::move(chosen.training->model);
  full.scalars = chosen.training->scalars;
  full.costs = std::move(chosen.costs);
  return planned;
}

}  // namespace thimble
