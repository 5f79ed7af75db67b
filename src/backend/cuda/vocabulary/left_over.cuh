// Products on tensor cores want extents that are multiples of eight; with others they take six
// times as long. A vocabulary is cut in two: the classes up to a multiple of eight, whose products
// are cuBLASLt's, and the few that are left over, whose products are made here. Every sum has one
// order.
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"

namespace thimble {

constexpr int64_t kEvenUnit = 8;

// Of so many classes, those up to a multiple; all of a few.
constexpr int64_t even_part(int64_t classes) {
  return classes < kEvenUnit ? classes : classes / kEvenUnit * kEvenUnit;
}

// Classes from `first` on, `count` of them, whose weights are [count,width].
template <class T>
struct LeftOver {
  int first, count, width;
  const T* weights;
};

// Logits of a row h [width], by all threads of a block.
template <class T, int kThreads>
__device__ void add_left_over(const LeftOver<T>& classes, const T* h, float* row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int j = warp; j < classes.count; j += kThreads / 32) {
    const T* const weight = classes.weights + int64_t{j} * classes.width;
    float sum = 0;
    for (int k = lane; k < classes.width; k += 32) sum += widen(h[k]) * widen(weight[k]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) row[classes.first + j] = sum;
  }
  if (classes.count > 0) __syncthreads();
}

constexpr int kLeftOverColumns = 32, kLeftOverGroups = 32;

// dweight [count,width] of them, written or added: gradients d [rows, pitch apart] times h. A block
// for 32 columns of a class; its groups of threads take every 32nd row.
template <class T>
__global__ void __launch_bounds__(kLeftOverColumns* kLeftOverGroups)
    left_over_weights(LeftOver<T> classes, const T* d, int64_t pitch, const T* h, int rows,
                      T* dweight, bool add) {
  __shared__ float sums[kLeftOverGroups][kLeftOverColumns];
  const int lane = static_cast<int>(threadIdx.x) % kLeftOverColumns;
  const int group = static_cast<int>(threadIdx.x) / kLeftOverColumns;
  const int column = static_cast<int>(blockIdx.x) * kLeftOverColumns + lane;
  const int j = static_cast<int>(blockIdx.y);
  float sum = 0;
  if (column < classes.width) {
#pragma unroll 4
    for (int r = group; r < rows; r += kLeftOverGroups) {
      sum +=
          widen(d[r * pitch + classes.first + j]) * widen(h[int64_t{r} * classes.width + column]);
    }
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= classes.width) return;
  for (int g = 1; g < kLeftOverGroups; ++g) sum += sums[g][lane];
  store(dweight + int64_t{j} * classes.width + column, sum, add);
}

// Their part of dh [rows,width], written or added.
template <class T>
__global__ void left_over_rows(LeftOver<T> classes, const T* d, int64_t pitch, int64_t rows, T* dh,
                               bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < rows * classes.width;
       i += threads) {
    const int64_t r = i / classes.width, column = i % classes.width;
    float sum = 0;
    for (int j = 0; j < classes.count; ++j) {
      sum += widen(d[r * pitch + classes.first + j]) *
             widen(classes.weights[int64_t{j} * classes.width + column]);
    }
    store(dh + i, sum, add);
  }
}

}  // namespace thimble
