#include "select/encodings.h"

#include <algorithm>

#include "plan/search/recompute_groups.h"
#include "select/pareto_selector.h"
#include "transform/codec_ladder.h"

namespace thimble {

std::vector<std::unique_ptr<StepOption>> encoded_options(const Step& plain,
                                                         const SearchLimits& limits) {
  const Graph& graph = plain.model.graph;
  const Recipe& recipe = plain.recipe;
  const std::vector<Encodable> encodable = find_encodable(graph, recipe.codec);
  std::vector<ValueId> values;
  for (const Encodable& entry : encodable) values.push_back(entry.value);

  // In all graphs together, so that large ones are planned in time.
  const size_t most = std::clamp<size_t>(limits.encoded_nodes / graph.nodes.size(),
                                         limits.least_encodings, limits.most_encodings);
  std::vector<std::unique_ptr<StepOption>> options;
  for (Encoding& encoding :
       encodings_to_try(graph, recipe.codec, recipe.allow, encodable,
                        groups_by_recompute_time(graph, plain.costs, values), most)) {
    Candidate candidate = {.recipe = recipe, .risk = encoding.risk};
    candidate.recipe.codec.chosen = std::move(encoding.values);
    Step step = build_step(candidate.recipe, plain.shape, *plain.machine);
    options.push_back(
        std::make_unique<StepOption>(std::move(candidate), std::move(step), true, limits));
  }
  return options;
}

Selection select_encoding(const Step& plain, const SearchLimits& limits) {
  auto options = encoded_options(plain, limits);
  const Recipe& least = options.front()->candidate().recipe;
  allowed_tier(least, options.front()->step().model.graph, least.codec);
  std::vector<Option*> all;
  for (const auto& option : options) all.push_back(option.get());
  ParetoSelector selector(std::move(all), Dominators::every_plan);
  auto pick = selector.within(plain.recipe.memory.value_or(Bytes(INT64_MAX)));
  if (!pick) pick = selector.within(selector.smallest().arena);  // which says how much it needs
  StepOption& chosen = *options[pick->option];
  const std::optional<Schedule> schedule = chosen.schedule_for(*pick);
  return {chosen.take(), schedule};
}

}  // namespace thimble
