// Numbers in one byte each (dynamic quantization, Dettmers 2016). A block of numbers shares a
// scale, its largest magnitude. The byte is a level in [0, 1] of that scale, finely spaced near 1
// and ever more coarsely towards 0. The levels, for a map whose largest decade has K cells:
//
//   level       0    1 2    3 4 5 6    ...    K-1 ... 2K-2       2K-1
//   stands for  0    centres of 2, 4, ... K equal cells of the     1
//                    decades ... [0.01, 0.1], [0.1, 1]
//
// All of it is forced inline: a kernel compiled for several instruction sets must contain it.
// The largest of a block is exact, and the error of another is at most half the distance of two
// levels: 0.7 % of the scale in the upper decade, 0.14 % in the next, ... (K = 64).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace thimble {

inline constexpr int64_t kCodeBlock = 256;  // numbers that share a scale
inline constexpr int64_t code_blocks(int64_t elements) {
  return (elements + kCodeBlock - 1) / kCodeBlock;
}

// Magnitudes in [0, 1], K = kCells: a power of two, with log2(K) decades.
template <int kCells>
struct DynamicLevels {
  static constexpr int kCount = 2 * kCells;

  static constexpr std::array<float, kCount> make() {
    std::array<float, kCount> levels{};
    double decade = 1;
    for (int cells = kCells; cells >= 2; cells /= 2, decade /= 10) {
      for (int c = 0; c < cells; ++c) {
        levels[static_cast<size_t>(cells - 1 + c)] =
            static_cast<float>(decade * (0.1 + 0.9 * (c + 0.5) / cells));
      }
    }
    levels[kCount - 1] = 1;
    return levels;
  }
  static constexpr std::array<float, kCount> kLevels = make();

  // The level below `a` or the one above: the latter if `a` lies further than the share `threshold`
  // on the way there. 0.5 rounds to the nearest; a uniform number in [0, 1) is right on average.
  // REQUIRES: 0 <= a <= 1. Without branches or tables, so that loops over it are vectorised.
  [[gnu::always_inline]] static int round(float a, float threshold) {
    constexpr float kUpTo[] = {1, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f};
    constexpr float kPower[] = {1, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f};
    constexpr int kDecades = std::countr_zero(static_cast<unsigned>(kCells));
    float x = a;  // scaled so that its decade is [0.1, 1]
    int cells = kCells;
    for (int d = 1; d < kDecades; ++d) {
      x = a <= kUpTo[d] ? a * kPower[d] : x;
      cells = a <= kUpTo[d] ? kCells >> d : cells;
    }
    // Centres of this decade's cells are at 0, 1, ... cells - 1.
    const float width = 0.9f / static_cast<float>(cells);
    const float at = (x - 0.1f) / width - 0.5f;
    int below = static_cast<int>(at + 1) - 1;  // at >= -0.5, but in the last decade
    float share = at - static_cast<float>(below);
    // Beyond the outer centres, the next level is the neighbour decade's: its cells are a fifth as
    // wide, or five times as wide; or it is 0, or 1.
    const float from_lower = (at + 0.6f) / 0.6f, from_zero = x / (0.1f + 0.5f * width);
    const float to_upper = (at - static_cast<float>(cells - 1)) / (cells == kCells ? 0.5f : 3.0f);
    share = at >= 0 ? share : cells == 2 ? from_zero : from_lower;
    below = at >= 0 ? below : -1;
    share = below >= cells - 1 ? to_upper : share;
    below = below >= cells - 1 ? cells - 1 : below;
    return cells - 1 + below + (share > threshold ? 1 : 0);
  }
};

// Codes of numbers with a sign: the level in seven bits, the sign in the eighth.
struct SignedCode {
  using Levels = DynamicLevels<64>;
  [[gnu::always_inline]] static uint8_t encode(float x, float scale, float threshold) {
    const int level = Levels::round(std::abs(x) / scale, threshold);
    return static_cast<uint8_t>(level | (x < 0 ? 128 : 0));
  }
  [[gnu::always_inline]] static float decode(uint8_t code) {
    const float magnitude = Levels::kLevels[code & 127u];
    return (code & 128u) != 0 ? -magnitude : magnitude;
  }
};

// Codes of numbers that are not negative. A number above zero stays above zero: a second
// moment is a divisor, so that it may become too large, but never zero.
struct UnsignedCode {
  using Levels = DynamicLevels<128>;
  [[gnu::always_inline]] static uint8_t encode(float x, float scale, float threshold) {
    const int level = Levels::round(x / scale, threshold);
    return static_cast<uint8_t>(x > 0 ? std::max(level, 1) : level);
  }
  [[gnu::always_inline]] static float decode(uint8_t code) { return Levels::kLevels[code]; }
};

template <class Code>
[[gnu::always_inline]] inline void decode_block(const uint8_t* codes, float scale, int64_t count,
                                                float* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = scale * Code::decode(codes[i]);
}

// Returns the scale. A block with a number that is not finite has a scale that is not, and so has
// whatever is decoded from it: a run that went wrong must not look healthy.
template <class Code, class Threshold>
[[gnu::always_inline]] inline float encode_block(const float* x, int64_t count, uint8_t* codes,
                                                 const Threshold& threshold) {
  float scale = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    scale = std::max(scale, std::abs(x[i]));
    finite = finite && std::abs(x[i]) <= std::numeric_limits<float>::max();
  }
  if (scale == 0 || !finite) {
    std::fill_n(codes, count, uint8_t{0});
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  for (int64_t i = 0; i < count; ++i) codes[i] = Code::encode(x[i], scale, threshold(i));
  return scale;
}
template <class Code>
[[gnu::always_inline]] inline float encode_block(const float* x, int64_t count, uint8_t* codes) {
  return encode_block<Code>(x, count, codes, [](int64_t) { return 0.5f; });
}

}  // namespace thimble
