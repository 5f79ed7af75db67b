// Puts batches into a program's inputs, record by record, straight from where the data lie: fields of
// a data set's records to the feeds of a model, by name. Holds no data: the only room it uses is the
// program's own input values in the arena.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/augment.h"
#include "data/buckets.h"
#include "data/dataset.h"
#include "execute/program.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace thimble {

struct FeedOptions {
  uint64_t seed = 0;
  bool augment = false;  // random crop and flip of images, training only
  int crop_pad = 4;
  bool flip = true;
  std::vector<Bucket> buckets = {};  // batches of so many tokens; empty: of so many rows
};

// What a run's recipe says of it.
FeedOptions feed_options(const Recipe& recipe);

// Some rows of the batch of a training step: those from `first` on, as many as the model has room
// for.
struct TrainingRows {
  int64_t step = 0;
  int64_t batch = 0;  // rows of the whole step
  int64_t first = 0;
  double counted = 0;  // what the step's loss is a mean over, where that is known; 0: it is not
};

class Feeder {
 public:
  // REQUIRES: the data set outlives it.
  Feeder(const Dataset& data, const FeedOptions& options);

  int64_t train_count() const { return data_.info().train_count; }
  int64_t test_count() const { return data_.info().test_count; }
  // Steps that see every training record once, in batches of `batch` rows where there are no buckets.
  int64_t steps_per_epoch(int64_t batch) const;
  // The bucket of a step; null: there are none.
  const Bucket* bucket(int64_t step) const;

  // UserError unless the records are what the model reads.
  void check(const Model& model) const;
  // Sets the data-dependent constants of the model.
  void describe(Program& program, const Model& model) const;

  // Fills in a microbatch; every epoch is another order of the same records. The loss is weighed by
  // the whole batch, so that microbatches add up to its mean. Returns what that is a mean over.
  double fill_training(Program& program, const Model& model, const TrainingRows& rows) const;

  // Fills up to a batch of test records from `first` on.
  struct TestRows {
    int64_t rows = 0;    // records
    double counted = 0;  // what the loss is a mean over
  };
  TestRows fill_test(Program& program, const Model& model, int64_t first) const;

  // The length of the longest of `count` records; 0: they have none.
  int64_t longest(const TrainingRows& rows, int64_t count) const;
  int64_t longest_test(int64_t first, int64_t count) const;

 private:
  // Which record a row is, and of which pass over them.
  struct Place {
    Split split;
    int64_t index;
    uint64_t epoch;
  };
  // in_order: every row goes through a stretch of neighbouring records.
  Place training_place(const TrainingRows& rows, int64_t row, bool in_order = false) const;

  void fill_row(Program& program, const Model& model, int64_t row, const Place& place) const;
  void pad_row(Program& program, const Model& model, int64_t row) const;
  double counted(const Model& model, const Place& place) const;

  const Dataset& data_;
  const FeedOptions options_;
  bool variable_ = false;             // whether any field is
  std::optional<BucketOrder> order_;  // where there are buckets
};

}  // namespace thimble
