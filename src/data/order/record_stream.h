// The random words of records that are made on the spot.
#pragma once

#include "base/number/philox.h"
#include "data/dataset.h"

namespace thimble {

// Of one record: the same words whenever it is read.
class RecordStream {
 public:
  RecordStream(uint64_t key, Split split, int64_t index)
      : key_(philox_key(key)),
        index_low_(static_cast<uint32_t>(index)),
        tag_((static_cast<uint32_t>(static_cast<uint64_t>(index) >> 32) << 1) |
             static_cast<uint32_t>(split)) {}

  PhiloxCounter block(uint64_t number) const {
    return philox(
        {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), index_low_, tag_},
        key_);
  }

 private:
  PhiloxKey key_;
  uint32_t index_low_;
  uint32_t tag_;
};

// A whole number in [0, limit).
constexpr int64_t drawn_below(uint32_t word, int64_t limit) {
  return static_cast<int64_t>((static_cast<uint64_t>(limit) * word) >> 32);
}

// The usual counts of a set that is made on the spot: a tenth as many records to test on.
struct MadeCounts {
  int64_t train, test;

  explicit MadeCounts(const DataRequest& request)
      : train(request.train_count.value_or(6400)), test(request.test_count.value_or(640)) {}
};

}  // namespace thimble
