// base/number/stochastic_rounding.h on the device: the same bits for the same random words. A
// rounded number is exact in its dtype, so storing it does not change it.
#pragma once

#include "backend/cuda/pointwise/quads.cuh"
#include "base/number/philox.h"

namespace thimble {

__device__ inline float stochastic_bf16(float value, uint32_t random) {
  const uint32_t word = __float_as_uint(value);
  if ((word & 0x7fffffffu) >= 0x7f7f0000u) return value;
  return __uint_as_float((word + (random >> 16)) & 0xffff0000u);
}

__device__ inline float stochastic_f16(float value, uint32_t random) {
  const uint32_t word = __float_as_uint(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  uint32_t bits = 0;
  if (magnitude < 0x38800000u) {
    const float steps = __uint_as_float(magnitude) * 0x1p24f;
    const auto whole = static_cast<uint32_t>(steps);
    const float rest = steps - static_cast<float>(whole);
    bits = whole + (uniform_from(random) < rest ? 1u : 0u);
  } else if (magnitude < 0x477fe000u) {
    bits = (magnitude - 0x38000000u + (random >> 19)) >> 13;
  } else {
    return value;
  }
  return half_at(((word >> 16) & 0x8000u) | bits);
}

// Where random words come from: Philox with key = seed and
// counter = { first + quad, stream, step, 16 + output }, as in updates of any backend.
struct RoundingWords {
  PhiloxKey key;
  uint32_t stream, step, first;

  __device__ void round(Quad& x, DType dtype, int64_t quad, int output) const {
    if (dtype == DType::f32) return;
    const PhiloxCounter words = philox(
        {first + static_cast<uint32_t>(quad), stream, step, 16u + static_cast<uint32_t>(output)},
        key);
    if (dtype == DType::bf16) {
#pragma unroll
      for (size_t e = 0; e < 4; ++e) x.at[e] = stochastic_bf16(x.at[e], words[e]);
      return;
    }
#pragma unroll
    for (size_t e = 0; e < 4; ++e) x.at[e] = stochastic_f16(x.at[e], words[e]);
  }
};

}  // namespace thimble
