// Puts batches into a program's inputs, record by record, straight from where the data lie: fields
// of a data set's records to the feeds of a model, by name. Holds no data: the only room it uses is
// the program's own input values in the arena, and, of records that take a while to read, some read
// ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/order/augment.h"
#include "data/order/read_ahead.h"
#include "recipe/recipe.h"
#include "train/feed/batch_source.h"
#include "train/feed/counted_labels.h"

namespace thimble {

struct FeedOptions {
  uint64_t seed = 0;
  bool augment = false;  // random crop and flip of images, training only
  int crop_pad = 4;
  bool flip = true;
  std::vector<Bucket> buckets = {};  // batches of so many tokens; empty: of so many rows
  bool on_threads =
      false;  // large batches by several threads, which allocates: beside a device only
};

// Its options from a run's recipe.
FeedOptions feed_options(const Recipe& recipe);

class Feeder final : public BatchSource {
 public:
  // REQUIRES: the data set outlives it.
  Feeder(const Dataset& data, const FeedOptions& options);

  int64_t train_count() const override { return data_.info().train_count; }
  int64_t test_count() const override { return data_.info().test_count; }
  int64_t steps_per_epoch(int64_t batch) const override;
  const Bucket* bucket(int64_t step) const override;

  void check(const Model& model) const override;
  void describe(Program& program, const Model& model) const override;

  // Every epoch is another order of the same records.
  double fill_training(Program& program, const Model& model,
                       const TrainingRows& rows) const override;
  TestRows fill_test(Program& program, const Model& model, int64_t first) const override;

  int64_t longest(const TrainingRows& rows, int64_t count) const override;
  int64_t longest_test(int64_t first, int64_t count) const override;

 private:
  // Which record a row is, of which pass over them, and where in the order of all.
  struct Place {
    Split split;
    int64_t index;
    uint64_t epoch;
    int64_t position;
  };
  // in_order: every row goes through a stretch of neighbouring records.
  Place training_place(const TrainingRows& rows, int64_t row, bool in_order = false) const;

  // Of sets whose records take a while to read, through a few that are read ahead.
  void read(const Place& place, int64_t batch, std::span<const RecordPart> parts) const;

  void fill_row(Program& program, const Model& model, int64_t row, const Place& place,
                int64_t batch) const;
  // Of how many rows at least a thread is worth its while; 0: of none.
  int64_t rows_of_a_thread(const Model& model) const;
  void pad_row(Program& program, const Model& model, int64_t row) const;
  double counted(const Model& model, const Place& place) const;

  const Dataset& data_;
  const FeedOptions options_;
  bool variable_ = false;                     // whether any field is
  std::optional<BucketOrder> order_;          // where there are buckets
  mutable std::unique_ptr<ReadAhead> ahead_;  // made when it is first of use
  mutable int64_t ahead_batch_ = 0;           // of the order that it reads in
  mutable CountedLabels labels_;              // of the step at hand
};

}  // namespace thimble
