// Batches that the caller fills in: no data set, no copy, only the places in the program's inputs
// where the rows belong.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/feed/batch_source.h"
#include "train/feed/counted_labels.h"

namespace thimble {

// One field of a batch: all of its rows in one piece, in row-major order.
struct BatchField {
  const std::string* name;
  TensorType type;                      // with the rows
  int row_axis = 0;                     // of type.shape
  int64_t limit = 0;                    // whole numbers must be below; 0: no matter
  std::optional<int64_t> ignored = {};  // or this one, a label that does not count
  std::byte* data = nullptr;
};

// A batch for the caller to fill.
struct BatchToFill {
  Split split = Split::train;
  int64_t step = 0;   // training
  int64_t batch = 0;  // training: rows of the whole step
  int64_t first = 0;  // rows of the step, or of the test, in front of these
  int64_t rows = 0;   // that there is room for; while training, all are to be filled
  std::span<const BatchField> fields;
};

struct CallerData {
  // Called before a training step begins; what it throws ends the step before it has done anything.
  std::function<void(int64_t step)> prepare = {};
  // Returns how many rows it filled, the first ones; of a test, fewer than there is room for where
  // no more are left, in the end none.
  std::function<int64_t(const BatchToFill& batch)> fill;
  int64_t steps_per_epoch = 1;
  bool tests = false;                        // whether fill() has test records, too
  std::vector<DataConstant> constants = {};  // of the model, by name
};

class CallerBatches final : public BatchSource {
 public:
  explicit CallerBatches(CallerData data) : data_(std::move(data)) {}

  int64_t train_count() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t test_count() const override { return data_.tests ? train_count() : 0; }
  int64_t steps_per_epoch(int64_t) const override { return data_.steps_per_epoch; }
  bool known_ahead() const override { return false; }

  // UserError where a constant is not stated, or is of another size.
  void check(const Model& model) const override;
  void describe(Program& program, const Model& model) const override;
  void prepare(int64_t step) const override {
    if (data_.prepare) data_.prepare(step);
  }
  double fill_training(Program& program, const Model& model,
                       const TrainingRows& rows) const override;
  TestRows fill_test(Program& program, const Model& model, int64_t first) const override;

 private:
  int64_t fill(Program& program, const Model& model, BatchToFill batch) const;

  const CallerData data_;
  mutable CountedLabels labels_;  // of the step at hand
};

}  // namespace thimble
