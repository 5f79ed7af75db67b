// Factors of tensor cores' products: a lane's part of them, in registers. Of f32, tensor cores take
// the 11 leading bits. A RoundedFloat is rounded to these. A float is split into its rounded part
// and the remainder. The product of two floats is then three products: all but remainder times
// remainder.
#pragma once

#include <cstdint>

#include "backend/cuda/numbers.cuh"

namespace thimble {

// Tensor cores that multiply bf16, and copies that run on their own, came with compute capability
// 8.0; for older devices the kernels are empty and never launched.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define THIMBLE_TENSOR_TILES 1
#else
#define THIMBLE_TENSOR_TILES 0
#endif

// A float in memory, of which products may take the leading bits.
struct RoundedFloat {
  float value;
};
__device__ inline float widen(RoundedFloat x) { return x.value; }

// Rounded to what tensor cores take.
__device__ inline uint32_t leading_bits(float x) {
  uint32_t bits = 0;
#if THIMBLE_TENSOR_TILES
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(x));
#endif
  return bits;
}

// Of two numbers of 16 bits each register, or of one f32.
template <class T, int kCount>
struct Factor {
  uint32_t at[kCount];

  Factor() = default;
  __device__ explicit Factor(const uint32_t (&bits)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      at[i] = sizeof(T) == 2 ? bits[i] : leading_bits(__uint_as_float(bits[i]));
    }
  }
};
template <int kCount>
struct Factor<float, kCount> {
  uint32_t at[kCount], rest[kCount];

  Factor() = default;
  __device__ explicit Factor(const uint32_t (&bits)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float x = __uint_as_float(bits[i]);
      at[i] = leading_bits(x);
      rest[i] = leading_bits(x - __uint_as_float(at[i]));
    }
  }
};

// sum [16,8] += left [16,d] right [d,8]; d numbers of T are 32 bytes.
template <class T>
__device__ void multiply_bits(float (&sum)[4], const uint32_t (&left)[4], uint32_t right0,
                              uint32_t right1) {
#if THIMBLE_TENSOR_TILES
  if constexpr (std::is_same_v<T, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
#endif
}

// With the two registers of `right` from kFirst on.
template <int kFirst, class T>
__device__ void multiply_add(float (&sum)[4], const Factor<T, 4>& left, const Factor<T, 4>& right) {
  if constexpr (std::is_same_v<T, float>) {
    multiply_bits<T>(sum, left.rest, right.at[kFirst], right.at[kFirst + 1]);
    multiply_bits<T>(sum, left.at, right.rest[kFirst], right.rest[kFirst + 1]);
  }
  multiply_bits<T>(sum, left.at, right.at[kFirst], right.at[kFirst + 1]);
}

}  // namespace thimble
