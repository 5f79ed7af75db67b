// Activations in 2, 4 or 8 bits a number: groups of them share a range, and codes are its equal
// steps.
//
//   group        256 numbers
//   codes        packed, the first number in the lowest bits; full groups fill whole bytes
//   level        0      1            2          ...  2^bits - 1
//   any number   low    low + step   low + 2 step    high
//   zeros kept   0      low          low + step      high        low: the least above zero
//
// Rounding is stochastic, so that what is decoded is right on average, and so are gradients that
// are linear in it. Where zeros are kept, of numbers that are not below zero, what is decoded is
// above zero exactly where they are, and right on average all the same: no number lies between
// zero and `low`. Forced inline, as in base/dynamic_code.h.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace thimble {

inline constexpr int64_t kCodeGroup = 256;
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

// dither(i), uniform in [0, 1), is added to element i, in steps, before it is cut to a whole one.
// A group with a number that is not finite has no finite range, and nothing decoded from it is.
template <int kBits, bool kZeros, class Dither>
[[gnu::always_inline]] inline CodeRange encode_group(const float* x, int64_t count, uint8_t* packed,
                                                     const Dither& dither) {
  constexpr int kPerByte = 8 / kBits;
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
  for (int64_t b = 0; b < packed_bytes(count, kBits); ++b) {
    unsigned byte = 0;
    for (int j = 0; j < kPerByte; ++j) {
      byte |= static_cast<unsigned>(levels[static_cast<size_t>(b * kPerByte + j)]) << (kBits * j);
    }
    packed[b] = static_cast<uint8_t>(byte);
  }
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
  constexpr int kPerByte = 8 / kBits;
  constexpr unsigned kMask = (1u << kBits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned level = (packed[i / kPerByte] >> (kBits * (i % kPerByte))) & kMask;
    x[i] = decode_level<kZeros>(range, static_cast<int>(level));
  }
}

// Calls body(integral constants) with the bits and whether zeros are kept, where they are known at
// run time.
template <class Body>
[[gnu::always_inline]] inline void with_group_code(int64_t bits, bool zeros, const Body& body) {
  const auto with_zeros = [&](auto constant) __attribute__((always_inline)) {
    if (zeros) {
      body(constant, std::bool_constant<kZerosKept>{});
    } else {
      body(constant, std::bool_constant<kAnyNumber>{});
    }
  };
  if (bits == 8) {
    with_zeros(std::integral_constant<int, 8>{});
  } else if (bits == 4) {
    with_zeros(std::integral_constant<int, 4>{});
  } else {
    with_zeros(std::integral_constant<int, 2>{});
  }
}

}  // namespace thimble
