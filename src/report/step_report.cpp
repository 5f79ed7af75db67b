#include "report/step_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipeline/step_size.h"
#include "report/plan_report.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

// Which values are kept encoded, and as what.
nlohmann::json encoded_json(const Graph& graph) {
  nlohmann::json json = nlohmann::json::object();
  for (const Encoded& encoded : find_encoded(graph)) {
    json[graph[encoded.value].name] = name_of(encoded.codec);
  }
  return json;
}

}  // namespace

nlohmann::json summary_of(const PlannedTraining& planned) {
  nlohmann::json summary = plan_summary({.device = planned.backend().name(),
                                         .batch = planned.microbatches.batch,
                                         .microbatch = planned.microbatches.rows,
                                         .tier = name_of(planned.tier),
                                         .plan_seconds = planned.plan_seconds},
                                        planned.graph(), priced_as_a_whole(planned));
  if (planned.report) summary["fit"] = to_json(*planned.report);
  if (!planned.backend().has_device_memory()) {
    summary["process_bytes"] = process_bytes(planned).count;
  }
  if (planned.recipe.memory > kLeastMemory) summary["budget_bytes"] = planned.recipe.memory->count;
  if (const int64_t tokens = tokens_of_step(planned); tokens > 0) {
    summary["tokens_per_second"] =
        static_cast<double>(tokens) * 1e3 / summary["predicted_step_ms"].get<double>();
  }
  summary["codec"] = to_string(planned.recipe.codec);
  summary["encoded"] = encoded_json(planned.graph());
  for (const StepShape& shape : token_batches(planned.recipe)) {
    summary["buckets"].push_back({{"rows", shape.rows}, {"length", shape.length}});
  }
  const Sparsity sparsity = sparsity_of(planned.graph());
  if (sparsity.elements > 0) {
    summary.update({{"nonzeros", sparsity.nonzeros},
                    {"sparse_elements", sparsity.elements},
                    {"density", sparsity.density()}});
  }
  return summary;
}

std::string batch_text(const PlannedTraining& planned) {
  const Microbatches& m = planned.microbatches;
  std::string text = fmt::format("batch {}", m.batch);
  if (planned.recipe.tokens > 0) {
    text = fmt::format("batches of {} tokens", planned.recipe.tokens);
    const char* gap = " (";
    for (const StepShape& shape : token_batches(planned.recipe)) {
      text += fmt::format("{}{}x{}", gap, shape.rows, shape.length);
      gap = ", ";
    }
    text += ")";
  }
  if (m.count() > 1 && planned.recipe.tokens == 0) {
    text += fmt::format(" in microbatches of {}", m.rows);
  } else if (planned.recipe.microbatch_tokens > 0 && most_microbatches(planned.recipe) > 1) {
    text += fmt::format(" in microbatches of {} tokens at most", planned.recipe.microbatch_tokens);
  } else if (m.count() > 1) {
    text += fmt::format(" in {} microbatches", m.count());
  }
  if (m.rest > 0 && planned.recipe.tokens == 0) text += fmt::format(", the last of {}", m.rest);
  const Sparsity sparsity = sparsity_of(planned.graph());
  if (sparsity.elements > 0) {
    text += fmt::format(", {} nonzeros of {} sparse weights (density {:.3g})", sparsity.nonzeros,
                        sparsity.elements, sparsity.density());
  }
  if (planned.tier != NumericsTier::exact) text += fmt::format(" ({})", name_of(planned.tier));
  return text;
}

}  // namespace thimble
