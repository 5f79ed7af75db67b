// How the rows of a batch are spread over the microbatches of a step.
#pragma once

#include <cstdint>

namespace thimble {

// `full` microbatches of `rows` rows each, then, for each rank, one of the `rest` that is left (0: none).
struct Microbatches {
  int64_t batch = 0;
  int64_t rows = 0;
  int full = 1;
  int64_t rest = 0;
  int ranks = 1;  // that share them: rank r takes those of number r, r + ranks, r + 2 ranks, ...

  int count() const { return full + (rest > 0 ? ranks : 0); }
  int64_t rows_of(int number) const { return number < full ? rows : rest; }
  // The first row of the batch that a microbatch has.
  int64_t first_of(int number) const {
    return number < full ? number * rows : full * rows + (number - full) * rest;
  }
  // How many each rank takes.
  int turns() const { return count() / ranks; }
  bool operator==(const Microbatches&) const = default;
};

// `rows` 0: each rank's share at once. UserError when a microbatch would be larger than the batch, or
// the ranks would not have as many of one size each.
Microbatches split_batch(int64_t batch, int64_t rows, int ranks = 1);

// The fewest microbatches of at most `most` rows, about as large all of them but the last. Each rank has
// as many rows. REQUIRES: the ranks divide the batch.
Microbatches split_evenly(int64_t batch, int64_t most, int ranks);

}  // namespace thimble
