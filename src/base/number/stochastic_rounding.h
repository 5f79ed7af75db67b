// Rounding to one of the two neighbours in a 16-bit float, at random: up with the probability that
// makes the mean of many roundings the number itself. Exact numbers stay as they are.
#pragma once

#include <bit>
#include <cstdint>

#include "base/number/dtype.h"

namespace thimble {

// `random`: 32 uniform bits. The numbers beyond the largest finite one are rounded to nearest.
inline BFloat16 round_stochastically(float value, uint32_t random, TypeTag<BFloat16>) {
  const auto word = std::bit_cast<uint32_t>(value);
  BFloat16 result(value);
  if ((word & 0x7fffffffu) < 0x7f7f0000u) {
    result.bits = static_cast<uint16_t>((word + (random >> 16)) >> 16);
  }
  return result;
}

inline Half round_stochastically(float value, uint32_t random, TypeTag<Half>) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  Half result(value);
  uint32_t bits = 0;
  if (magnitude < 0x38800000u) {
    // Below the normal numbers steps are 2^-24; the count of steps is the number's bits.
    const float steps = std::bit_cast<float>(magnitude) * 0x1p24f;
    const auto whole = static_cast<uint32_t>(steps);
    const float rest = steps - static_cast<float>(whole);
    bits = whole + (static_cast<float>(random >> 8) * 0x1p-24f < rest ? 1u : 0u);
  } else if (magnitude < 0x477fe000u) {
    bits = (magnitude - 0x38000000u + (random >> 19)) >> 13;
  } else {
    return result;
  }
  result.bits = static_cast<uint16_t>(((word >> 16) & 0x8000u) | bits);
  return result;
}

}  // namespace thimble
