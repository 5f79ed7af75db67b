// Results of the forward pass in evaluation (logits, scores), row by row, as a model's outputs name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "train/bound_step.h"
#include "train/feed/batch_source.h"

namespace thimble {

// A result of some records, the first `rows` of its first axis. Its bytes are good during the call.
struct Predicted {
  const Output* output;
  TensorType type;  // as it lies
  std::span<const std::byte> bytes;
  int64_t rows = 0;
};

// By field: whether any of those outputs follows from it.
std::vector<bool> fields_predicted_from(const Model& model);

// Calls `take` with every output of all test records of a source, batch by batch: the outputs that have a
// row for each record, in their order. UserError where the model has none, or its batches are not whole.
// REQUIRES: the records have the fields that the model reads.
void predict(BoundStep& evaluator, const BatchSource& source, uint64_t seed,
             const std::function<void(const Predicted&)>& take);

}  // namespace thimble
