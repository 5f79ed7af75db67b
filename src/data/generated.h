// Images and sequences made on the spot, of any size and number of classes, for tests, parity and
// benchmarks: no files, no memory, and yet something that a model can learn. Each class has its own
// waves; a record is its class's waves, slightly shifted, under noise. Whole-number arithmetic
// only, so that every machine makes the same bytes. Any index >= 0 has a record; both splits share
// the classes and differ in their records.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace thimble {

struct ImageSpec {
  Shape image = {32, 32, 3};  // [H,W,C]
  int64_t classes = 10;
};

// The deviation of a triangle wave of amplitude a is a / sqrt(3), that of uniform noise of width w
// is w / sqrt(12): together sqrt(64^2 / 3 + 96^2 / 12) = 46.2.
inline constexpr float kGeneratedMean = 127.5f;
inline constexpr float kGeneratedDeviation = 46.2f;

// REQUIRES: image.size() == spec.image.elements(), index >= 0.
void generated_image(const ImageSpec& spec, uint64_t seed, Split split, int64_t index,
                     std::span<uint8_t> image, int32_t& label);

struct SequenceSpec {
  int64_t length = 0;    // T
  int64_t features = 0;  // I
  int64_t classes = 10;
};

// Element (t, i) goes to out[t * stride + i], within [-2, 2]. A class is a period (4, 6, 8, ...
// steps, then again with other features) and a weight per feature. For column b of a batch [T,B,I]:
// out = batch.subspan(b * I), stride = B * I.
// REQUIRES: stride >= features, out reaches the last element, index >= 0.
void generated_sequence(const SequenceSpec& spec, uint64_t seed, Split split, int64_t index,
                        std::span<float> out, int64_t stride, int32_t& label);

}  // namespace thimble
