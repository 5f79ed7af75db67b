#include "pipeline/step_size.h"

namespace thimble {

Bytes beside_arena(int64_t steps, int64_t nodes) {
  return kBesideArena + kOfANode * ((steps - 1) * nodes);
}

Bytes process_bytes(const PlannedTraining& training) {
  return training.plan().arena +
         beside_arena(std::ssize(training.steps), std::ssize(training.graph().nodes));
}

int64_t tokens_of_step(const PlannedTraining& training) {
  if (training.recipe.tokens > 0) return training.recipe.tokens;
  const Model& model = training.full().model;
  if (model.loss_counts.empty()) return 0;
  const int64_t entries = model.graph[model.feed(model.loss_counts).value].type.elements();
  return entries / model.rows() * training.microbatches.batch;
}

}  // namespace thimble
