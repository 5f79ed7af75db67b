// Threads that share a row of a tensor: a warp, or a block for long rows.
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"

namespace thimble {

constexpr int kRowThreads = 256;

// kThreads of a block of kRowThreads. Every thread of a group must take part in its sums and
// maxima.
template <int kThreads>
struct RowGroup {
  static constexpr int kGroups = kRowThreads / kThreads;  // in a block
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t first_row = blockIdx.x * int64_t{kGroups} + threadIdx.x / kThreads;
  const int64_t rows_apart = gridDim.x * int64_t{kGroups};

  // The fold over the group, in all of its threads.
  template <class Real, class Fold>
  __device__ Real fold(Real own, const Fold& two) const {
    for (int offset = 16; offset > 0; offset /= 2)
      own = two(own, __shfl_xor_sync(~0u, own, offset));
    if constexpr (kThreads > 32) {
      __shared__ Real of_warps[kThreads / 32];
      __syncthreads();
      if (lane % 32 == 0) of_warps[lane / 32] = own;
      __syncthreads();
      own = of_warps[0];
      for (int w = 1; w < kThreads / 32; ++w) own = two(own, of_warps[w]);
    }
    return own;
  }
  __device__ float sum(float own) const {
    return fold(own, [](float a, float b) { return a + b; });
  }
  __device__ float largest(float own) const {
    return fold(own, [](float a, float b) { return fmaxf(a, b); });
  }
};

// Rows from here on have a block each.
constexpr int64_t kLongRow = 2048;

// Calls body(kThreads as an integral constant) with the group that suits rows of `columns`.
template <class Body>
void with_row_group(int64_t columns, const Body& body) {
  if (columns < kLongRow) {
    body(std::integral_constant<int, 32>{});
  } else {
    body(std::integral_constant<int, kRowThreads>{});
  }
}

inline unsigned row_blocks(int64_t rows, int64_t columns, const CudaDevice& device) {
  const int64_t each = columns < kLongRow ? kRowThreads / 32 : 1;
  return static_cast<unsigned>(
      std::clamp<int64_t>((rows + each - 1) / each, 1, int64_t{device.multiprocessors} * 8));
}

}  // namespace thimble
