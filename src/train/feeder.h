// Puts batches into a program's inputs, record by record, straight from where the data lie. Holds no
// data: the only room it uses is the program's own input values in the arena.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "execute/program.h"
#include "model/model.h"

namespace thimble {

struct FeedOptions {
  uint64_t seed = 0;
  bool augment = false;  // random crop and flip, training only
  int crop_pad = 4;
  bool flip = true;
};

// Some rows of the batch of a training step: those from `first` on, as many as the model has room
// for.
struct TrainingRows {
  int64_t step = 0;
  int64_t batch = 0;  // rows of the whole step
  int64_t first = 0;
};

class Feeder {
 public:
  virtual ~Feeder() = default;

  virtual int64_t train_count() const = 0;
  virtual int64_t test_count() const = 0;
  // Fills in a microbatch; every epoch is another order of the same records. The loss is normalised
  // by the whole batch, so that microbatches add up to its mean.
  virtual void fill_training(Program& program, const Model& model, const TrainingRows& rows) = 0;
  // Fills up to a batch of test records from `first` on; returns how many count.
  virtual int64_t fill_test(Program& program, const Model& model, int64_t first) = 0;
  // Data-dependent constants of the model (pixel mean and deviation).
  virtual void describe(Program& program, const Model& model) = 0;
};

std::unique_ptr<Feeder> make_image_feeder(Dataset& dataset, const FeedOptions& options);
// Generated sequences (data/sequence.h); endless, so an epoch is a nominal count.
std::unique_ptr<Feeder> make_sequence_feeder(const FeedOptions& options, int64_t train_count,
                                             int64_t test_count);

}  // namespace thimble
