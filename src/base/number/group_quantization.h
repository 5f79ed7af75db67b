// Activations in 2 to 8 bits a number: groups of them share a range, and codes are its equal
// steps.
//
//   group        256 numbers
//   codes        packed, the first number in the lowest bits; eight of them fill as many bytes as a
//                code has bits
//   level        0      1            2          ...  2^bits - 1
//   any number   low    low + step   low + 2 step    high
//   zeros kept   0      low          low + step      high        low: the least above zero
//
// Rounding is stochastic, so that what is decoded is right on average, and so are gradients that
// are linear in it. Where zeros are kept, of numbers that are not below zero, what is decoded is
// above zero exactly where they are, and right on average all the same: no number lies between
// zero and `low`. Forced inline, as in base/number/dynamic_quantization.h.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

namespace thimble {

inline constexpr int64_t kCodeGroup = 256;
inline constexpr int kLeastCodeBits = 2, kMostCodeBits = 8;
inline constexpr int64_t code_groups(int64_t elements) {
  return (elements + kCodeGroup - 1) / kCodeGroup;
}
inline constexpr int64_t packed_bytes(int64_t elements, int bits) {
  return (elements * bits + 7) / 8;
}

struct CodeRange {
  float low = 0;
  float step = 0;
};

// Whether a code keeps zeros.
inline constexpr bool kAnyNumber = false, kZerosKept = true;

// The levels of `count` numbers, with zeros behind them: as few at a time as fill whole bytes.
template <int kBits>
[[gnu::always_inline]] inline void pack_group(const std::array<uint8_t, kCodeGroup>& levels,
                                              int64_t count, uint8_t* packed) {
  constexpr int kBytes = kBits / std::gcd(8, kBits), kCodes = 8 / std::gcd(8, kBits);
  using Run = std::conditional_t<kBytes == 1, unsigned, uint64_t>;
  const int64_t bytes = packed_bytes(count, kBits);
  for (int64_t to = 0, from = 0; to < bytes; to += kBytes, from += kCodes) {
    Run run = 0;
    for (int j = 0; j < kCodes; ++j) {
      run |= Run{levels[static_cast<size_t>(from + j)]} << (kBits * j);
    }
    packed[to] = static_cast<uint8_t>(run);
    for (int b = 1; b < kBytes && to + b < bytes; ++b) {
      packed[to + b] = static_cast<uint8_t>(run >> (8 * b));
    }
  }
}

// dither(i), uniform in [0, 1), is added to element i, in steps, before it is cut to a whole one.
// A group with a number that is not finite has no finite range, and nothing decoded from it is.
template <int kBits, bool kZeros, class Dither>
[[gnu::always_inline]] inline CodeRange encode_group(const float* x, int64_t count, uint8_t* packed,
                                                     const Dither& dither) {
  constexpr int kFirst = kZeros ? 1 : 0;               // the level of `low`
  constexpr float kSteps = (1 << kBits) - 1 - kFirst;  // from there to `high`
  constexpr float kMost = std::numeric_limits<float>::max();
  float low = kZeros ? kMost : x[0], high = kZeros ? 0 : x[0];
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low && (!kZeros || x[i] > 0) ? x[i] : low;
    high = x[i] > high ? x[i] : high;
    finite = finite & (std::abs(x[i]) <= kMost);
  }
  if (kZeros && !(high > 0)) low = high;  // zeros alone
  const float step = (high - low) / kSteps;
  const bool codable = finite && (kZeros ? step >= 0 : step > 0);
  std::array<uint8_t, kCodeGroup> levels{};
  if (codable) {
    const float per_step = kZeros && step == 0 ? 0 : 1 / step;
    for (int64_t i = 0; i < count; ++i) {
      const float up = (x[i] - low) * per_step + dither(i);
      const int level = static_cast<int>(up < kSteps ? up : kSteps) + kFirst;
      levels[static_cast<size_t>(i)] = static_cast<uint8_t>(kZeros && !(x[i] > 0) ? 0 : level);
    }
  } else {
    std::fill_n(levels.begin(), count, static_cast<uint8_t>(kFirst));
  }
  pack_group<kBits>(levels, count, packed);
  const bool in_range = codable || (finite && step == 0);
  return {in_range ? low : std::numeric_limits<float>::quiet_NaN(), codable ? step : 0};
}

template <bool kZeros>
[[gnu::always_inline]] constexpr float decode_level(CodeRange range, int level) {
  if (kZeros && level == 0) return 0;
  return range.low + range.step * static_cast<float>(kZeros ? level - 1 : level);
}

template <int kBits, bool kZeros>
[[gnu::always_inline]] inline void decode_group(const uint8_t* packed, CodeRange range,
                                                int64_t count, float* x) {
  constexpr unsigned kMask = (1u << kBits) - 1;
  const auto number = [range](uint64_t codes, int64_t at) __attribute__((always_inline)) {
    const auto level = static_cast<unsigned>(codes >> (kBits * at)) & kMask;
    return decode_level<kZeros>(range, static_cast<int>(level));
  };
  if (8 % kBits == 0) {  // no code lies in two bytes
    constexpr int kPerByte = 8 / kBits;
    for (int64_t i = 0; i < count; ++i) x[i] = number(packed[i / kPerByte], i % kPerByte);
    return;
  }
  for (int64_t first = 0; first < count; first += 8) {
    const int64_t codes = std::min<int64_t>(8, count - first);
    uint64_t eight = 0;
    for (int64_t b = 0; b < packed_bytes(codes, kBits); ++b) {
      eight |= uint64_t{packed[first / 8 * kBits + b]} << (8 * b);
    }
    for (int64_t j = 0; j < codes; ++j) x[first + j] = number(eight, j);
  }
}

// Calls body(integral constants) with the bits and whether zeros are kept, where they are known at
// run time.
template <int kBits = kLeastCodeBits, class Body>
[[gnu::always_inline]] inline void with_group_code(int64_t bits, bool zeros, const Body& body) {
  if (kBits < kMostCodeBits && bits != kBits) {
    with_group_code<std::min(kBits + 1, kMostCodeBits)>(bits, zeros, body);
  } else if (zeros) {
    body(std::integral_constant<int, kBits>{}, std::bool_constant<kZerosKept>{});
  } else {
    body(std::integral_constant<int, kBits>{}, std::bool_constant<kAnyNumber>{});
  }
}

}  // namespace thimble
