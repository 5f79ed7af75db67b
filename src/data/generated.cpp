#include "data/generated.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number/philox.h"
#include "data/order/record_stream.h"

namespace thimble {
namespace {

// Angles are in turns of 2^32, so that they wrap as unsigned numbers do.

// -32768 .. 32767 .. -32768 over one turn: a sine wave's straight cousin.
int32_t triangle(uint32_t angle) {
  const uint32_t folded = angle < 0x80000000u ? angle : ~angle;  // 0 .. 2^31 - 1, up and down
  return static_cast<int32_t>(folded >> 15) - 32768;
}

// A small shift of a record's waves: within a sixteenth of a turn either way.
uint32_t jitter(uint32_t word) { return (word >> 3) - 0x10000000u; }

// The waves of a class do not depend on the record.
PhiloxCounter class_words(uint64_t key, int32_t label, int64_t lane) {
  return philox({static_cast<uint32_t>(label), static_cast<uint32_t>(lane), 0, 0}, philox_key(key));
}

// Up to two and a half waves across an image, in either direction.
uint32_t step_per_pixel(uint32_t word, int64_t extent) {
  const int64_t turns_times_2_32 = (static_cast<int64_t>(word) - 0x80000000ll) * 5;
  return static_cast<uint32_t>(turns_times_2_32 / extent);
}

constexpr int32_t kWave = 64;   // amplitude in pixel units
constexpr int32_t kNoise = 96;  // noise is uniform over this many values; 128 + 64 + 48 < 256

}  // namespace

void generated_image(const ImageSpec& spec, uint64_t seed, Split split, int64_t index,
                     std::span<uint8_t> image, int32_t& label) {
  internal_check(index >= 0 && std::ssize(image) == spec.image.elements(),
                 "generated_image: the output does not hold the image");
  const RecordStream stream(seed ^ stable_hash("generated record"), split, index);
  const PhiloxCounter own = stream.block(0);
  label = static_cast<int32_t>(drawn_below(own[0], spec.classes));

  const int64_t height = spec.image[0], width = spec.image[1], channels = spec.image[2];
  for (int64_t channel = 0; channel < channels; ++channel) {
    const PhiloxCounter wave = class_words(seed ^ stable_hash("generated class"), label, channel);
    const uint32_t down = step_per_pixel(wave[0], height), across = step_per_pixel(wave[1], width);
    uint32_t row_angle = wave[2] + jitter(own[1]);
    for (int64_t y = 0; y < height; ++y, row_angle += down) {
      uint32_t angle = row_angle;
      uint8_t* to = image.data() + y * width * channels + channel;
      for (int64_t x = 0; x < width; ++x, angle += across, to += channels) {
        *to = static_cast<uint8_t>(128 + ((triangle(angle) * kWave) >> 15));
      }
    }
  }
  // Sixteen bytes of noise per block.
  for (size_t at = 0; at < image.size(); at += 16) {
    const PhiloxCounter words = stream.block(1 + at / 16);
    for (size_t i = 0; i < std::min<size_t>(16, image.size() - at); ++i) {
      const auto byte = static_cast<int32_t>((words[i / 4] >> (8 * (i % 4))) & 0xffu);
      image[at + i] = static_cast<uint8_t>(image[at + i] + ((byte * kNoise) >> 8) - kNoise / 2);
    }
  }
}

void generated_sequence(const SequenceSpec& spec, uint64_t seed, Split split, int64_t index,
                        std::span<float> out, int64_t stride, int32_t& label) {
  internal_check(index >= 0 && spec.length >= 1 && spec.features >= 1 && spec.classes >= 1 &&
                     stride >= spec.features &&
                     std::ssize(out) >= (spec.length - 1) * stride + spec.features,
                 "generated_sequence: the output does not hold the sequence");
  const RecordStream stream(seed ^ stable_hash("sequence record"), split, index);
  const PhiloxCounter own = stream.block(0);
  label = static_cast<int32_t>(drawn_below(own[0], spec.classes));
  const uint32_t step = UINT32_MAX / static_cast<uint32_t>(4 + 2 * (label % 16));
  for (int64_t feature = 0; feature < spec.features; ++feature) {
    const PhiloxCounter wave = class_words(seed ^ stable_hash("sequence class"), label, feature);
    const auto weight =
        static_cast<int32_t>(64 + (wave[0] >> 25));  // half to almost one and a half
    uint32_t angle = wave[1] + jitter(own[1]);
    for (int64_t t = 0; t < spec.length; ++t, angle += step) {
      // In units of 2^-15, here and below: all sums are exact.
      out[static_cast<size_t>(t * stride + feature)] =
          static_cast<float>((triangle(angle) * weight) >> 7) * 0x1p-15f;
    }
  }
  PhiloxCounter words{};
  uint64_t drawn = 0;
  for (int64_t t = 0; t < spec.length; ++t) {
    for (int64_t feature = 0; feature < spec.features; ++feature, ++drawn) {
      if (drawn % 4 == 0) words = stream.block(1 + drawn / 4);
      const auto noise = static_cast<int32_t>(words[drawn % 4] >> 18) - 8192;  // a quarter each way
      out[static_cast<size_t>(t * stride + feature)] += static_cast<float>(noise) * 0x1p-15f;
    }
  }
}

}  // namespace thimble
