// Images and sequences made on the spot, of any size and number of classes, for tests, parity and
// benchmarks: no files, no memory, and yet something that a model can learn. Each class has its own
// waves; a record is its class's waves, slightly shifted, under noise. Whole-number arithmetic
// only, so that every machine makes the same bytes.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace thimble {

struct GeneratedSpec {
  Shape image = {32, 32, 3};  // [H,W,C]
  int64_t classes = 10;
  int64_t train_count = 50'000;  // nominal: any index >= 0 has a record
  int64_t test_count = 10'000;
  uint64_t seed = 0;
};

class Generated final : public Dataset {
 public:
  // Throws UserError on an empty image or no classes.
  explicit Generated(const GeneratedSpec& spec);

  const DatasetInfo& info() const override { return info_; }
  void read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const override;

 private:
  GeneratedSpec spec_;
  DatasetInfo info_;
};

struct SequenceSpec {
  int64_t length = 0;    // T
  int64_t features = 0;  // I
  int64_t classes = 10;
};

// Sequence `index` of an endless set: element (t, i) goes to out[t * stride + i], within [-2, 2].
// A class is a period (4, 6, 8, ... steps, then again with other features) and a weight per
// feature. For column b of a batch [T,B,I]: out = batch.subspan(b * I), stride = B * I.
// Both splits share the classes and differ in their records.
// REQUIRES: stride >= features, out reaches the last element, index >= 0.
void generated_sequence(const SequenceSpec& spec, uint64_t seed, Split split, int64_t index,
                        std::span<float> out, int64_t stride, int32_t& label);

}  // namespace thimble
