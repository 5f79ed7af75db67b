// Records of like length together: batches of so many padded tokens. Each bucket takes the records
// that fit it and no shorter one; a step is a batch of one bucket.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace thimble {

struct Bucket {
  int64_t length = 0;
  int64_t rows = 0;  // records of a step

  bool operator==(const Bucket&) const = default;
};

// The longest of the record's variable fields; 0: it has none.
int64_t record_length(const Dataset& data, Split split, int64_t index);

// At most `most` lengths, the largest that of the longest record of either split or a little more,
// which leave the fewest padded positions among the training records. Multiples of 8, or of less
// where records are short.
std::vector<int64_t> choose_lengths(const Dataset& data, int64_t most);

// The order of the training records in batches, another in every epoch: a function of the seed
// alone, computed element by element. The rest of a bucket, when its batches are full, moves to the
// next longer one, so that no record waits for good. The rest of the longest waits for the next
// epoch.
class BucketOrder {
 public:
  // UserError where a record is longer than the longest bucket, or there is not one full batch.
  // REQUIRES: lengths differ; the data set outlives it.
  BucketOrder(const Dataset& data, std::span<const Bucket> buckets, uint64_t seed);

  int64_t steps_per_epoch() const { return steps_; }
  const Bucket& bucket(int64_t step) const { return pools_[place(step).pool].bucket; }

  struct Place {
    int64_t index = 0;  // of the record
    uint64_t epoch = 0;
  };
  // Row `row` of a step's batch. Allocates nothing.
  Place record(int64_t step, int64_t row) const;

 private:
  // A bucket with the records that are its own and how many the shorter one hands on.
  struct Pool {
    Bucket bucket;
    int64_t begin = 0;  // in the order of lengths
    int64_t own = 0;
    int64_t handed_on = 0;
    int64_t batches = 0;
    int64_t first_batch = 0;  // of all

    int64_t size() const { return own + handed_on; }
  };
  struct BatchPlace {
    size_t pool = 0;
    int64_t batch = 0;  // of the pool
    uint64_t epoch = 0;
  };
  BatchPlace place(int64_t step) const;
  // Which record, in the order of lengths, stands at `position` of a pool.
  int64_t at(size_t pool, int64_t position, uint64_t epoch) const;

  uint64_t seed_ = 0;
  std::vector<Pool> pools_;       // shorter ones first
  std::vector<uint32_t> sorted_;  // records by length; empty: they are in that order
  int64_t steps_ = 0;
};

}  // namespace thimble
