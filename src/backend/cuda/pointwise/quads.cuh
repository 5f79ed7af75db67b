// Four neighbours of a tensor at a time, whatever its dtype: which one it is, is known at run time,
// so that kernels over weights, gradients and states of any dtypes are compiled once. Loads only
// move bits; what they stand for is worked out when all of them are on their way.
#pragma once

#include <cstring>

#include "backend/cuda/numbers.cuh"
#include "graph/op.h"

namespace thimble {

struct Numbers {
  void* data;
  DType dtype;
};

inline Numbers numbers_of(const TensorRef& tensor) { return {tensor.data, tensor.type.dtype}; }

struct Quad {
  float at[4];
};

// Two 32-bit words hold four 16-bit numbers, four hold as many f32.
__device__ inline uint4 load_bits(const Numbers& from, int64_t quad, int valid) {
  uint4 bits = {};
  if (from.dtype == DType::f32) {
    const uint32_t* const words = static_cast<const uint32_t*>(from.data) + 4 * quad;
    if (valid == 4) return *reinterpret_cast<const uint4*>(words);
    bits.x = words[0];
    if (valid > 1) bits.y = words[1];
    if (valid > 2) bits.z = words[2];
  } else {
    const uint16_t* const halves = static_cast<const uint16_t*>(from.data) + 4 * quad;
    if (valid == 4) {
      const uint2 both = *reinterpret_cast<const uint2*>(halves);
      bits.x = both.x;
      bits.y = both.y;
      return bits;
    }
    bits.x = halves[0];
    if (valid > 1) bits.x |= static_cast<uint32_t>(halves[1]) << 16;
    if (valid > 2) bits.y = halves[2];
  }
  return bits;
}

__device__ inline float half_at(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

__device__ inline Quad widen(uint4 bits, DType dtype) {
  if (dtype == DType::f32) {
    return {__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z),
            __uint_as_float(bits.w)};
  }
  if (dtype == DType::bf16) {
    return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
            __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u)};
  }
  return {half_at(bits.x & 0xffffu), half_at(bits.x >> 16), half_at(bits.y & 0xffffu),
          half_at(bits.y >> 16)};
}

__device__ inline uint32_t half_bits(float x, DType dtype) {
  return dtype == DType::bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(x))
                              : __half_as_ushort(__float2half_rn(x));
}

__device__ inline void store_quad(const Numbers& to, int64_t quad, const Quad& x, int valid) {
  if (to.dtype == DType::f32) {
    float* const words = static_cast<float*>(to.data) + 4 * quad;
    if (valid == 4) {
      *reinterpret_cast<float4*>(words) = {x.at[0], x.at[1], x.at[2], x.at[3]};
      return;
    }
#pragma unroll
    for (int e = 0; e < 3; ++e) {
      if (e < valid) words[e] = x.at[e];
    }
  } else {
    uint16_t* const halves = static_cast<uint16_t*>(to.data) + 4 * quad;
    uint32_t bits[4];
    if (to.dtype == DType::bf16) {
#pragma unroll
      for (int e = 0; e < 4; ++e) bits[e] = half_bits(x.at[e], DType::bf16);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) bits[e] = half_bits(x.at[e], DType::f16);
    }
    if (valid == 4) {
      *reinterpret_cast<uint2*>(halves) = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
      return;
    }
#pragma unroll
    for (int e = 0; e < 3; ++e) {
      if (e < valid) halves[e] = static_cast<uint16_t>(bits[e]);
    }
  }
}

// How many elements of quad `quad` there are, of `count` in all.
__device__ inline int valid_in(int64_t quad, int64_t count) {
  const int64_t left = count - 4 * quad;
  return left < 4 ? static_cast<int>(left) : 4;
}

// Rounds numbers as storing them in `dtype` would.
__device__ inline void round_to(Quad& x, DType dtype) {
  if (dtype == DType::f32) return;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const uint32_t bits = half_bits(x.at[e], dtype);
    x.at[e] = dtype == DType::bf16 ? __uint_as_float(bits << 16) : half_at(bits);
  }
}

}  // namespace thimble
