// Translates with a trained model, in the arena that it was trained in: for each length that the
// run has, a variant of the model that says what follows a beginning.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/beam_search.h"
#include "generate/trained_model.h"

namespace thimble {

class Translator {
 public:
  // UserError where the model does not translate, or a beam does not fit the arena.
  // REQUIRES: `trained` and `options` outlive it.
  Translator(TrainedModel& trained, const BeamOptions& options);

  // Tokens that a sentence may have, with its end.
  int64_t longest() const;
  // The translation of each sentence, in their order; `progress` is told how many are done.
  // REQUIRES: sentences have an end, and longest() tokens at most.
  std::vector<std::vector<int32_t>> translate(
      std::span<const std::vector<int32_t>> sentences,
      const std::function<void(size_t done)>& progress = {});

 private:
  struct Task {
    size_t sentence = 0;
    Beam beam;
  };
  // The shortest variant with room for the sentence and its translation.
  BoundStep& variant_for(int64_t source, int64_t& longest);
  // The shortest with room for all sentences that have not ended, as far as they have come.
  BoundStep& variant_for(std::span<const std::vector<int32_t>> sentences,
                         std::span<const Task> tasks);
  void run_batch(std::span<const std::vector<int32_t>> sentences, std::vector<Task>& tasks);
  void advance(BoundStep& variant, std::span<const std::vector<int32_t>> sentences,
               std::span<Task> tasks);

  TrainedModel& trained_;
  const BeamOptions& options_;
  std::vector<std::unique_ptr<PlannedStep>> variants_;
  std::vector<BoundStep> bound_;  // shorter ones first
  std::vector<float> logits_;
};

}  // namespace thimble
