// How the rows of a batch are spread over the microbatches of a step.
#pragma once

#include <cstdint>

namespace thimble {

// `full` microbatches of `rows` rows each, then one of the `rest` that is left (0: none).
struct Microbatches {
  int64_t batch = 0;
  int64_t rows = 0;
  int full = 1;
  int64_t rest = 0;
  int ranks = 1;  // that share them: rank r takes those of number r, r + ranks, r + 2 ranks, ...

  int count() const { return full + (rest > 0 ? 1 : 0); }
  // How many each rank takes.
  int turns() const { return count() / ranks; }
  bool operator==(const Microbatches&) const = default;
};

// `rows` 0: each rank's share at once. UserError when a microbatch would be larger than the batch, or
// the ranks would not have as many of one size each.
Microbatches split_batch(int64_t batch, int64_t rows, int ranks = 1);

// As many, all of `rows` rows.
inline Microbatches alike(const Microbatches& all, int64_t rows) {
  return {.batch = rows * all.count(), .rows = rows, .full = all.count(), .ranks = all.ranks};
}

}  // namespace thimble
