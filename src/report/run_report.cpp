#include "report/run_report.h"

#include <algorithm>

#include "base/host/process.h"

namespace thimble {

Bytes process_beside(Bytes arena) { return std::max(Bytes(), resident_peak() - arena); }

nlohmann::json summary_of(const PlannedTraining& planned, const TrainResult& result) {
  nlohmann::json json = summary_of(planned);
  json.update({{"steps", result.steps},
               {"epochs", result.epochs},
               {"train_loss", result.train.loss},
               {"test_loss", result.test.loss},
               {"measured_arena_bytes", result.measured_arena.count},
               {"evaluation_arena_bytes", result.evaluation_arena.count},
               {"step_ms", result.step_ms},
               {"loss_scale", result.loss_scale},
               {"skipped_steps", result.skipped},
               {"weights_sha256", result.weights_sha256},
               {"rss_peak_bytes", resident_peak().count},
               {"resumed_at", result.resumed_at},
               {"stopped", result.stopped},
               {"checkpoint", result.checkpoint}});
  if (result.tokens_per_second > 0) json["tokens_per_second"] = result.tokens_per_second;
  for (const Metric& metric : planned.full().model.metrics) {
    json["train_" + metric.name] = result.train[metric.name];
    json["test_" + metric.name] = result.test[metric.name];
  }
  for (const StepShape& shape : result.not_met) {
    json["shapes_not_met"].push_back({{"rows", shape.rows}, {"length", shape.length}});
  }
  if (result.beside_arena) {
    json["device_overhead_bytes"] = result.beside_arena->count;
  } else {
    json["process_beside_arena_bytes"] = process_beside(planned.plan().arena).count;
  }
  if (planned.recipe.sparsity.enabled()) {
    json.update({{"reallocations", result.reallocations}, {"prune_threshold", result.threshold}});
  }
  if (result.arena_of_ranks.size() > 1) {
    for (const Bytes bytes : result.arena_of_ranks) json["rank_arena_bytes"].push_back(bytes.count);
    json["communication_share"] = result.communication;
    json["ranks_over"] = result.ranks_over;
  }
  return json;
}

}  // namespace thimble
