// Trained classifiers at work: how likely each class is, by records.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "generate/trained_model.h"
#include "train/feed/batch_source.h"

namespace thimble {

// Shares that add up to 1, of exp(logit): computed in doubles, the largest logit subtracted.
std::vector<double> probabilities_of(std::span<const float> logits);

class Classifier {
 public:
  // UserError where the model gives no classes. REQUIRES: the model outlives it.
  explicit Classifier(TrainedModel& trained);

  // Called for every record, in order, with the probability of each class.
  using Take = std::function<void(int64_t record, const std::vector<double>& probabilities)>;
  // Of all test records of a source; their labels say nothing here.
  // REQUIRES: they have the fields that the model reads.
  void classify(const BatchSource& source, const Take& take);

 private:
  TrainedModel& trained_;
  std::vector<std::unique_ptr<PlannedStep>> variants_;  // the longest first
  std::unique_ptr<BoundStep> bound_;                    // of the longest
  ValueId logits_;
};

}  // namespace thimble
