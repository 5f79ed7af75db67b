// Micro-batches (gradient accumulation): how the rows of a batch are divided over the micro-batches
// of a step.
#pragma once

#include <cstdint>

namespace thimble {

// `full` micro-batches of `rows` rows each, then, for each rank, one of `rest` rows (0: none).
struct Microbatches {
  int64_t batch = 0;
  int64_t rows = 0;
  int full = 1;
  int64_t rest = 0;
  int ranks = 1;  // rank r takes the micro-batches r, r + ranks, r + 2 ranks, ...

  int count() const { return full + (rest > 0 ? ranks : 0); }
  int64_t rows_of(int number) const { return number < full ? rows : rest; }
  // The first row of a micro-batch in the batch.
  int64_t first_of(int number) const {
    return number < full ? number * rows : full * rows + (number - full) * rest;
  }
  // How many micro-batches each rank takes.
  int turns() const { return count() / ranks; }
  bool operator==(const Microbatches&) const = default;
};

// `rows` 0: one micro-batch a rank. UserError if a micro-batch would be larger than the batch, or
// the ranks could not have equal numbers of micro-batches of each size.
Microbatches split_batch(int64_t batch, int64_t rows, int ranks = 1);

// The fewest micro-batches of at most `most` rows, of about equal size except the last. Each rank
// has equally many rows. REQUIRES: the ranks divide the batch.
Microbatches split_evenly(int64_t batch, int64_t most, int ranks);

}  // namespace thimble
