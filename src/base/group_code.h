// Activations in 2, 4 or 8 bits a number: groups of them share a range, and codes are its equal
// steps.
//
//   group    256 numbers   low ... low + (2^bits - 1) step
//   codes    packed, the first number in the lowest bits; full groups fill whole bytes
//
// Rounding is stochastic, so that what is decoded is right on average, and so are gradients that
// are linear in it. The lower end of the range is exact: zeros behind a relu stay zeros. Forced
// inline, as in base/dynamic_code.h.
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

// dither(i), uniform in [0, 1), is added to element i, in steps, before it is cut to a whole one.
// A group with a number that is not finite has no finite range, and nothing decoded from it is.
template <int kBits, class Dither>
[[gnu::always_inline]] inline CodeRange encode_group(const float* x, int64_t count, uint8_t* packed,
                                                     const Dither& dither) {
  constexpr int kPerByte = 8 / kBits;
  constexpr float kTop = (1 << kBits) - 1;
  float low = x[0], high = x[0];
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
    finite = finite & (std::abs(x[i]) <= std::numeric_limits<float>::max());
  }
  const float step = (high - low) / kTop;
  if (!finite || !(step > 0)) {
    std::fill_n(packed, packed_bytes(count, kBits), uint8_t{0});
    return finite && step == 0 ? CodeRange{low, 0}
                               : CodeRange{std::numeric_limits<float>::quiet_NaN(), 0};
  }
  std::array<uint8_t, kCodeGroup> levels{};
  const float per_step = 1 / step;
  for (int64_t i = 0; i < count; ++i) {
    const float up = (x[i] - low) * per_step + dither(i);
    const float level = up < kTop ? up : kTop;
    levels[static_cast<size_t>(i)] = static_cast<uint8_t>(static_cast<int>(level));
  }
  for (int64_t b = 0; b < packed_bytes(count, kBits); ++b) {
    unsigned byte = 0;
    for (int j = 0; j < kPerByte; ++j) {
      byte |= static_cast<unsigned>(levels[static_cast<size_t>(b * kPerByte + j)]) << (kBits * j);
    }
    packed[b] = static_cast<uint8_t>(byte);
  }
  return {low, step};
}

template <int kBits>
[[gnu::always_inline]] inline void decode_group(const uint8_t* packed, CodeRange range,
                                                int64_t count, float* x) {
  constexpr int kPerByte = 8 / kBits;
  constexpr unsigned kMask = (1u << kBits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned level = (packed[i / kPerByte] >> (kBits * (i % kPerByte))) & kMask;
    x[i] = range.low + range.step * static_cast<float>(static_cast<int>(level));
  }
}

// Calls body(integral constant) with the bits, where they are known at run time.
template <class Body>
[[gnu::always_inline]] inline void with_bits(int64_t bits, const Body& body) {
  if (bits == 8) {
    body(std::integral_constant<int, 8>{});
  } else if (bits == 4) {
    body(std::integral_constant<int, 4>{});
  } else {
    body(std::integral_constant<int, 2>{});
  }
}

}  // namespace thimble
