// Eight neighbours of a tensor at a time: what a byte of single bits stands for.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {

template <class T>
struct alignas(sizeof(T) == 1 ? 8 : 16) Eight {
  T at[8];
};

// Elements from `first` on, a multiple of eight; zeros beyond the last of `count`.
template <class T>
__device__ Eight<T> load_eight(const T* from, int64_t first, int64_t count) {
  if (first + 8 <= count) return *reinterpret_cast<const Eight<T>*>(from + first);
  Eight<T> x;
#pragma unroll
  for (int e = 0; e < 8; ++e) x.at[e] = first + e < count ? from[first + e] : narrow<T>(0);
  return x;
}

template <class T>
__device__ void store_eight(T* to, int64_t first, int64_t count, const Eight<T>& x) {
  if (first + 8 <= count) {
    *reinterpret_cast<Eight<T>*>(to + first) = x;
    return;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    if (first + e < count) to[first + e] = x.at[e];
  }
}

}  // namespace thimble
