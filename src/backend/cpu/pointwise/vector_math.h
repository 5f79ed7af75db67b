// exp, sigmoid and tanh as straight-line code, so that loops over them vectorise. Within 2 units in
// the last place of the libm ones wherever the result is a normal number.
#pragma once

#include <bit>
#include <cstdint>

#include "backend/cpu/parallel.h"

namespace thimble {

// 2^n * e^r with |r| <= ln(2) / 2. Below -86.6 it is 0; a NaN stays one.
THIMBLE_INLINE float vector_exp(float x) {
  constexpr float kLowest = -86.6f, kHighest = 88.72f;
  // Adding it rounds to an integer, which is then in the low bits.
  constexpr float kRounder = 12582912.0f;
  const float bounded = x > kHighest ? kHighest : (x < kLowest ? kLowest : x);
  const float shifted = bounded * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // In two halves: n may be 128, which no single power of two in float is.
  const uint32_t bits = std::bit_cast<uint32_t>(shifted);
  const float power = std::bit_cast<float>((bits + 126u) << 23);
  const float result = p * power * 2.0f;
  return x < kLowest ? 0.0f : result;
}

// 0 below -88.72, as far down as vector_exp goes up, so that x times it ends at 0.
THIMBLE_INLINE float vector_sigmoid(float x) {
  return x < -88.72f ? 0.0f : 1.0f / (1.0f + vector_exp(-x));
}

THIMBLE_INLINE float vector_tanh(float x) {
  const float size = x < 0 ? -x : x;
  const float far = 1.0f - 2.0f / (vector_exp(2.0f * size) + 1.0f);
  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float near = p * square * x + x;
  return size < 0.625f ? near : (x < 0 ? -far : far);
}

}  // namespace thimble
