// The codes of dynamic_quantization.h in a few instructions without a branch or a division, for
// devices that are bound by how many they issue. The bits are the same:
//
//   x / scale    a product with the scale's inverse, rounded to what a division gives by two
//                remainders (fma), each exact
//   decade       by the number's exponent: a binade holds one boundary of decades at most
//   share        of a decade's edges by a product with a known inverse and one remainder
//
// Arithmetic is a class: add, sub, mul rounded one by one, fma, and of numbers in [0, 2^22) the floor,
// as a float and as a whole number below 256.
#pragma once

#include "base/number/dynamic_quantization.h"

namespace thimble {

// Scales out of this range are moved into it, and numbers with them: products stay normal.
inline constexpr float kLeastScale = 0x1p-60F, kMostScale = 0x1p60F;

// The divisor of all numbers of a block.
struct BlockScale {
  float shift, scale, inverse;  // scale: shifted
};
// `inverse`: rounded to the nearest. REQUIRES: scale > 0, finite.
template <class Inverse>
constexpr BlockScale block_scale(float scale, const Inverse& inverse) {
  const float shift = scale < kLeastScale ? 0x1p64F : scale > kMostScale ? 0x1p-64F : 1.0F;
  return {shift, scale * shift, inverse(scale * shift)};
}

// a / b to the nearest, with b's inverse. Exact remainders wherever the result is 2^-40 or more.
template <class Arithmetic>
constexpr float divided(float a, float b, float inverse) {
  float q = Arithmetic::mul(a, inverse);
  q = Arithmetic::fma(Arithmetic::fma(-q, b, a), inverse, q);
  return Arithmetic::fma(Arithmetic::fma(-q, b, a), inverse, q);
}
// The same with one remainder, of those b that tests have tried with every a.
template <class Arithmetic>
constexpr float divided_by_known(float a, float b, float inverse) {
  const float q = Arithmetic::mul(a, inverse);
  return Arithmetic::fma(Arithmetic::fma(-q, b, a), inverse, q);
}

// One decade of a map: what a number is multiplied by, how many cells, and the distances to the
// levels beyond the outer ones, with their inverses.
struct alignas(16) CodeDecade {
  float power, cells, top, top_inverse;
  float bottom, bottom_inverse, is_last, unused;
};
// The decades of numbers with one exponent: `first`, and the next up to `up_to`.
struct alignas(8) CodeBinade {
  float up_to;
  int first;
};
inline constexpr uint32_t kLeastExponent = 106;  // below the last boundary, 1e-6
inline constexpr int kBinades = 128 - static_cast<int>(kLeastExponent);

inline constexpr std::array<float, 7> kDecadeEnds = {1, 1e-1F, 1e-2F, 1e-3F, 1e-4F, 1e-5F, 1e-6F};
inline constexpr std::array<float, 7> kPowers = {1, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F};

template <int kCells>
struct CodeTables {
  static constexpr int kDecades = std::countr_zero(static_cast<unsigned>(kCells));
  static constexpr float kCell = 0.9F;  // of a decade, times its cells

  CodeDecade decades[kDecades];
  CodeBinade binades[kBinades];

  static constexpr CodeTables make() {
    CodeTables tables{};
    for (int d = 0; d < kDecades; ++d) {
      const int cells = kCells >> d;
      const bool last = cells == 2;
      const float top = d == 0 ? 0.5F : 3.0F;
      const float bottom = last ? 0.1F + 0.5F * (kCell / 2) : 0.6F;
      tables.decades[d] = {kPowers[static_cast<size_t>(d)],
                           static_cast<float>(cells),
                           top,
                           1 / top,
                           bottom,
                           1 / bottom,
                           last ? 1.0F : 0.0F,
                           0};
    }
    for (int b = 0; b < kBinades; ++b) {
      const uint32_t exponent = kLeastExponent + static_cast<uint32_t>(b);
      const float least = std::bit_cast<float>(exponent << 23);
      const float most = std::bit_cast<float>((exponent << 23) | 0x7fffffu);
      CodeBinade& binade = tables.binades[b];
      binade = {-1, 0};
      for (int d = 1; d < kDecades; ++d) {
        if (most <= kDecadeEnds[static_cast<size_t>(d)]) {
          binade.first = d;
        } else if (least <= kDecadeEnds[static_cast<size_t>(d)]) {
          binade.up_to = kDecadeEnds[static_cast<size_t>(d)];
        }
      }
    }
    return tables;
  }
};

// DynamicLevels<kCells>::round() of 0 <= a <= 1, as a float. Of an `a` below 2^-40 it may be another
// neighbour where the threshold is below 2^-20.
template <class Arithmetic, int kCells>
constexpr float level_of(float a, float threshold, const CodeTables<kCells>& tables) {
  const uint32_t least = kLeastExponent << 23, bits = std::bit_cast<uint32_t>(a);
  const CodeBinade binade = tables.binades[((bits > least ? bits : least) >> 23) - kLeastExponent];
  const CodeDecade decade = tables.decades[binade.first + (a <= binade.up_to ? 1 : 0)];
  const float x = Arithmetic::mul(a, decade.power);
  // Centres of this decade's cells are at 0, 1, ... cells - 1.
  const float cell = divided_by_known<Arithmetic>(Arithmetic::sub(x, 0.1F), 0.9F, 1 / 0.9F);
  const float at = Arithmetic::fma(cell, decade.cells, -0.5F);
  const float above = Arithmetic::floor(Arithmetic::add(at, 1.0F));
  const float up = at >= 0 ? (above < decade.cells ? above : decade.cells) : 0.0F;
  const bool top = up == decade.cells, bottom = up == 0;
  const float from_below = decade.is_last != 0 ? x : Arithmetic::add(at, 0.6F);
  const float part = bottom ? from_below : Arithmetic::sub(at, Arithmetic::sub(up, 1.0F));
  const float whole = top ? decade.top : bottom ? decade.bottom : 1.0F;
  const float inverse = top ? decade.top_inverse : bottom ? decade.bottom_inverse : 1.0F;
  const float share = divided_by_known<Arithmetic>(part, whole, inverse);
  return decade.cells - 2.0F + up + (share > threshold ? 1.0F : 0.0F);
}

// A level in 0 .. 255 as a number.
constexpr uint32_t level_bits(float level) {
  return std::bit_cast<uint32_t>(level + 8388608.0F) & 255U;
}

// Levels that are nearest, by the least number of each: a guess by a line for its decade is off by one
// at most.
template <int kCells>
struct NearestTables {
  static constexpr int kLevels = 2 * kCells;
  struct alignas(8) Line {
    float slope, offset;
  };
  struct alignas(8) Level {
    float least, next;  // of it, and of the next one
  };
  CodeBinade binades[kBinades];
  Line lines[CodeTables<kCells>::kDecades];
  Level levels[kLevels];

  // All but the levels.
  static constexpr NearestTables make() {
    NearestTables tables{};
    for (int b = 0; b < kBinades; ++b) tables.binades[b] = CodeTables<kCells>::make().binades[b];
    for (int d = 0; d < CodeTables<kCells>::kDecades; ++d) {
      const float cells = static_cast<float>(kCells >> d);
      tables.lines[d] = {kPowers[static_cast<size_t>(d)] * (cells / 0.9F),
                         cells - 1 - 0.1F * (cells / 0.9F)};
    }
    return tables;
  }
};
// The least numbers of all levels but 0, which has 0, found by halving.
template <int kCells>
std::array<float, 2 * kCells> least_of_levels() {
  std::array<float, 2 * kCells> least{};
  for (int level = 1; level < 2 * kCells; ++level) {
    uint32_t below = 0, from = std::bit_cast<uint32_t>(1.0F);
    while (from - below > 1) {
      const uint32_t middle = below + (from - below) / 2;
      const bool reached =
          DynamicLevels<kCells>::round(std::bit_cast<float>(middle), 0.5F) >= level;
      (reached ? from : below) = middle;
    }
    least[static_cast<size_t>(level)] = std::bit_cast<float>(from);
  }
  return least;
}
template <int kCells>
constexpr typename NearestTables<kCells>::Level level_of_least(const float* least, int level) {
  const float beyond = std::numeric_limits<float>::infinity();
  return {least[level], level + 1 < 2 * kCells ? least[level + 1] : beyond};
}

// DynamicLevels<kCells>::round() of 0 <= a <= 1 to the nearest.
template <class Arithmetic, int kCells>
constexpr uint32_t nearest_level(float a, const NearestTables<kCells>& tables) {
  const uint32_t least = kLeastExponent << 23, bits = std::bit_cast<uint32_t>(a);
  const CodeBinade binade = tables.binades[((bits > least ? bits : least) >> 23) - kLeastExponent];
  const auto line = tables.lines[binade.first + (a <= binade.up_to ? 1 : 0)];
  const uint32_t guess = Arithmetic::whole(Arithmetic::fma(a, line.slope, line.offset));
  const auto level = tables.levels[guess];
  return guess + (a >= level.next ? 1U : 0U) - (a < level.least ? 1U : 0U);
}

// SignedCode::encode() to the nearest, and UnsignedCode::encode().
template <class Arithmetic>
constexpr uint32_t signed_code(float x, const BlockScale& scale, const NearestTables<64>& tables) {
  const float a = divided<Arithmetic>(std::abs(x) * scale.shift, scale.scale, scale.inverse);
  return nearest_level<Arithmetic>(a, tables) | (x < 0 ? 128U : 0U);
}
template <class Arithmetic>
constexpr uint32_t unsigned_code(float x, const BlockScale& scale, float threshold,
                                 const CodeTables<128>& tables) {
  const float a = divided<Arithmetic>(x * scale.shift, scale.scale, scale.inverse);
  const float level = level_of<Arithmetic>(a, threshold, tables);
  return level_bits(x > 0 && level < 1 ? 1.0F : level);
}

}  // namespace thimble
