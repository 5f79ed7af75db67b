// Stored numbers in device code: f32, f16 and bf16 in memory, float in registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/numbers.h"

namespace thimble {

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__half x) { return __half2float(x); }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T narrow(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

// Writes or adds into one element, rounding once.
template <class T>
__device__ void store(T* to, float value, bool add) {
  *to = narrow<T>(add ? widen(*to) + value : value);
}

// As many numbers as one access moves at best. REQUIRES of its address: a multiple of 16 bytes, as
// every buffer of an arena has.
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  T at[kCount];
};

// Calls body(TypeTag<T>{}) with the device's type for f32, f16 or bf16.
template <class Body>
decltype(auto) with_device_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f16:
      return body(TypeTag<__half>{});
    case DType::bf16:
      return body(TypeTag<__nv_bfloat16>{});
    default:
      internal_check(dtype == DType::f32, "not a number that device kernels know");
      return body(TypeTag<float>{});
  }
}

}  // namespace thimble
