#include "transform/microbatches.h"

#include "base/error.h"

namespace thimble {

Microbatches split_batch(int64_t batch, int64_t rows) {
  user_check(batch >= 1, "a batch needs at least one row, not {}", batch);
  if (rows == 0) rows = batch;
  user_check(rows >= 1, "a microbatch needs at least one row, not {}", rows);
  user_check(
      rows <= batch,
      "a microbatch of {} rows is more than the batch of {}; give a smaller --microbatch or a "
      "larger --batch",
      rows, batch);
  user_check(batch / rows <= 1'000'000, "{} microbatches are more than a million", batch / rows);
  return {batch, rows, static_cast<int>(batch / rows), batch % rows};
}

}  // namespace thimble
