#include "transform/microbatches.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {

Microbatches split_batch(int64_t batch, int64_t rows, int ranks) {
  user_check(batch >= 1, "a batch needs at least one row, not {}", batch);
  if (rows == 0) {
    user_check(batch % ranks == 0,
               "a batch of {} does not divide among {} ranks; choose a --batch that does", batch,
               ranks);
    rows = batch / ranks;
  }
  user_check(rows >= 1, "a microbatch needs at least one row, not {}", rows);
  user_check(
      rows <= batch,
      "a microbatch of {} rows is more than the batch of {}; give a smaller --microbatch or a "
      "larger --batch",
      rows, batch);
  user_check(batch / rows <= 1'000'000, "{} microbatches are more than a million", batch / rows);
  const Microbatches all = {batch, rows, static_cast<int>(batch / rows), batch % rows, ranks};
  user_check(ranks == 1 || (all.rest == 0 && all.full % ranks == 0),
             "a batch of {} in microbatches of {} does not give each of {} ranks as many; choose a "
             "--microbatch of {}, or leave it out",
             batch, rows, ranks, std::max<int64_t>(1, batch / ranks));
  return all;
}

Microbatches split_evenly(int64_t batch, int64_t most, int ranks) {
  const int64_t share = batch / ranks;
  const int64_t turns = (share + most - 1) / most;
  const int64_t rows = (share + turns - 1) / turns;
  user_check(share / rows <= 1'000'000, "{} microbatches are more than a million", share / rows);
  return {batch, rows, static_cast<int>(share / rows) * ranks, share % rows, ranks};
}

}  // namespace thimble
