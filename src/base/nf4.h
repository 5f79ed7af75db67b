// Weights in 4 bits, to the byte and the bit as bitsandbytes has them (NF4 with double
// quantisation):
//
//   numbers, flattened   │ 64          │ 64          │ ...        the last block may be shorter
//   codes u8             two numbers a byte, the first in the high half: the nearest of 16 levels to
//                        number / scale
//   absmax u8            │ c           │ c           │ ...        a block's scale, the largest |number|,
//                                                                in 8 bits
//   nested f32           │ 256 scales  │ ...                      the scale of 256 of those
//   offset f32           their mean, which was subtracted before
//
//   scale = map[c] * nested + offset, number = level[code] * scale, each rounded once
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thimble {

inline constexpr int64_t kNf4Block = 64;    // numbers that share a scale
inline constexpr int64_t kNf4Nested = 256;  // scales that share one

inline constexpr std::array<float, 16> kNf4Levels = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

constexpr int64_t nf4_code_bytes(int64_t numbers) { return (numbers + 1) / 2; }
constexpr int64_t nf4_blocks(int64_t numbers) { return (numbers + kNf4Block - 1) / kNf4Block; }
constexpr int64_t nf4_nested(int64_t numbers) {
  return (nf4_blocks(numbers) + kNf4Nested - 1) / kNf4Nested;
}

// The 256 numbers that scales are rounded to, in order.
std::span<const float, 256> nf4_scale_map();

// A weight's codes and scales, wherever they lie.
struct Nf4Weight {
  const uint8_t* codes;
  const uint8_t* absmax;
  const float* nested;
  float offset;
};
// Scales of blocks [first, first + count).
void nf4_scales(const Nf4Weight& weight, int64_t first, int64_t count, float* to);
// The same of numbers, in plain loops.
void nf4_decode(const Nf4Weight& weight, int64_t first, int64_t count, float* to);

// Codes a weight whose numbers come piece by piece, in order. The scales of blocks are kept until
// the last piece, since their mean is known only then.
class Nf4Coder {
 public:
  explicit Nf4Coder(int64_t numbers) : left_(numbers) {
    scales_.reserve(static_cast<size_t>(nf4_blocks(numbers)));
  }
  // Writes the codes of the piece. REQUIRES: pieces are whole blocks, but for the last.
  void add(std::span<const float> piece, std::span<uint8_t> codes);

  struct Scales {
    std::vector<uint8_t> absmax;
    std::vector<float> nested;
    float offset = 0;
  };
  // REQUIRES: all pieces were added.
  Scales finish() const;

 private:
  int64_t left_;
  std::vector<float> scales_;
};

}  // namespace thimble
