// Where the batches of a run come from: records of a data set (train/feed/feeder.h), or whatever
// the caller puts there (train/feed/caller_batches.h). A source writes straight into a program's
// inputs.
#pragma once

#include <cstdint>

#include "data/order/buckets.h"
#include "execute/program.h"
#include "model/model.h"

namespace thimble {

// Some rows of the batch of a training step: those from `first` on, as many as the model has room
// for.
struct TrainingRows {
  int64_t step = 0;
  int64_t batch = 0;  // rows of the whole step
  int64_t first = 0;
  double counted = 0;  // what the step's loss is a mean over, where that is known; 0: it is not
};

// The rows that were filled in for a test.
struct TestRows {
  int64_t rows = 0;    // records
  double counted = 0;  // what the loss is a mean over
};

class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  virtual int64_t train_count() const = 0;
  // Records to test on; where that is not known, more than there can be: fill_test() says when they
  // are over.
  virtual int64_t test_count() const = 0;
  // Steps that see every training record once, in batches of `batch` rows where there are no
  // buckets.
  virtual int64_t steps_per_epoch(int64_t batch) const = 0;
  // The bucket of a step; null: there are none.
  virtual const Bucket* bucket(int64_t step) const {
    static_cast<void>(step);
    return nullptr;
  }

  // Whether the rows of a step are known before it is asked for. While a device is busy they are
  // then fetched, in a loop of the caller's own, too.
  virtual bool known_ahead() const { return true; }

  // UserError unless the records are what the model reads.
  virtual void check(const Model& model) const = 0;
  // Sets the data-dependent constants of the model.
  virtual void describe(Program& program, const Model& model) const = 0;

  // Called before anything of a step is done: what fails here spoils nothing.
  virtual void prepare(int64_t step) const { static_cast<void>(step); }
  // Fills in a microbatch. The loss is weighed by the whole batch, so that microbatches add up to
  // its mean. Returns what that is a mean over.
  virtual double fill_training(Program& program, const Model& model,
                               const TrainingRows& rows) const = 0;
  // Fills up to a batch of test records from `first` on. No rows: there are no more.
  virtual TestRows fill_test(Program& program, const Model& model, int64_t first) const = 0;

  // The length of the longest of `count` records; 0: they have none.
  virtual int64_t longest(const TrainingRows& rows, int64_t count) const {
    static_cast<void>(rows);
    static_cast<void>(count);
    return 0;
  }
  virtual int64_t longest_test(int64_t first, int64_t count) const {
    static_cast<void>(first);
    static_cast<void>(count);
    return 0;
  }
};

}  // namespace thimble
