// Sums down the columns of a tensor: threads in float over few rows, then warps and blocks by a
// fixed tree, slices in double. The order depends on the shape alone.
#pragma once

#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

// Folds the threads' own sums of a block; calls write(k, column, sum) once for every sum and column
// of the strip. All threads of the block must come here.
template <int kSums, int kWide, class Fold, class Write>
__device__ void fold_block_columns(const ColumnTiles& t, float (&sum)[kSums][kWide],
                                   const Fold& fold, const Write& write) {
  constexpr int kMostWarps = kColumnThreads / 32;
  __shared__ float folded[kMostWarps][kSums][32 * kWide];
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      for (int offset = 16; offset >= t.across; offset /= 2) {
        sum[k][e] = fold(sum[k][e], __shfl_down_sync(~0u, sum[k][e], offset));
      }
      if (lane < t.across) folded[warp][k][lane * kWide + e] = sum[k][e];
    }
  }
  __syncthreads();
  const int strip = t.across * kWide;
  for (int at = static_cast<int>(threadIdx.x); at < strip * kSums;
       at += static_cast<int>(blockDim.x)) {
    const int k = at / strip, own = at % strip;
    const int column = static_cast<int>(blockIdx.y) * strip + own;
    if (column >= t.columns) continue;
    float all = folded[0][k][own];
    for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) all = fold(all, folded[w][k][own]);
    write(k, column, all);
  }
}

struct SumFold {
  static constexpr float kNothing = 0;
  template <class Real>
  __device__ Real operator()(Real a, Real b) const {
    return a + b;
  }
};

// The partial sum k of a column is at [slice, k, column].
__device__ inline int64_t partial_at(const ColumnTiles& t, int sums, int64_t slice, int k,
                                     int column) {
  return (slice * sums + k) * t.columns + column;
}

// Blocks of a strip count themselves here; zeros between launches, which follow each other in a
// stream: only one backend of the process may be at work at a time.
constexpr int kTickets = 1024;
static __device__ unsigned strip_tickets[kMostStreams][kTickets];

// The tiles as sum_columns() can use them: one slice where there are more strips than tickets.
inline ColumnTiles with_tickets(ColumnTiles tiles) {
  if (tiles.strips > kTickets) {
    tiles.slices = 1;
    tiles.rows_each = tiles.rows;
  }
  return tiles;
}

// The end of a kernel that sums down the columns in one launch: calls finish(column, sums in
// double) once for every column, in the block of its strip that comes last; slices are added in
// their order, whichever it is. `partial` is not used where there is one slice. All threads must
// come here.
template <int kSums, int kWide, class Finish>
__device__ void sum_columns(const ColumnTiles& t, float (&sum)[kSums][kWide], float* partial,
                            int stream, const Finish& finish) {
  __shared__ double total[kSums][32 * kWide];
  __shared__ double parts[kSums][kColumnThreads];
  __shared__ bool last;
  const int strip = t.across * kWide, thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.y) * strip, own = thread % strip;
  if (t.slices == 1) {
    fold_block_columns(t, sum, SumFold{}, [&](int k, int column, float all) {
      total[k][column - first] = static_cast<double>(all);
    });
  } else {
    fold_block_columns(t, sum, SumFold{}, [&](int k, int column, float all) {
      partial[partial_at(t, kSums, blockIdx.x, k, column)] = all;
    });
    __threadfence();
    __syncthreads();
    if (thread == 0) {
      unsigned& ticket = strip_tickets[stream][blockIdx.y];
      last = atomicAdd(&ticket, 1) + 1 == static_cast<unsigned>(t.slices);
      if (last) ticket = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    // Every strip-th thread has slices of column `own`.
    const int part = thread / strip, parts_each = static_cast<int>(blockDim.x) / strip;
    double own_sum[kSums] = {};
    if (first + own < t.columns && part < parts_each) {
#pragma unroll 4
      for (int s = part; s < t.slices; s += parts_each) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) {
          own_sum[k] +=
              static_cast<double>(__ldcg(partial + partial_at(t, kSums, s, k, first + own)));
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) parts[k][thread] = own_sum[k];
    __syncthreads();
    if (thread < strip) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) {
        for (int p = 1; p < parts_each; ++p) own_sum[k] += parts[k][thread + p * strip];
        total[k][own] = own_sum[k];
      }
    }
  }
  __syncthreads();
  if (thread >= strip || first + own >= t.columns) return;
  double sums[kSums];
#pragma unroll
  for (int k = 0; k < kSums; ++k) sums[k] = total[k][own];
  finish(first + own, sums);
}

// Folds partial sums over slices: one sum per column, 32 columns per block, 32 threads for each;
// calls write(column, double).
template <class Fold, class Write>
__global__ void __launch_bounds__(1024)
    fold_slices(const float* partial, ColumnTiles tiles, Fold fold, Write write) {
  const int lane = static_cast<int>(threadIdx.x) & 31, part = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  double sum = static_cast<double>(Fold::kNothing);
  if (column < tiles.columns) {
#pragma unroll 4
    for (int s = part; s < tiles.slices; s += 32) {
      sum = fold(sum, static_cast<double>(partial[partial_at(tiles, 1, s, 0, column)]));
    }
  }
  __shared__ double sums[32][33];
  sums[part][lane] = sum;
  __syncthreads();
  // Now a warp has one column, a lane one of its parts.
  sum = sums[lane][part];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum = fold(sum, __shfl_down_sync(~0u, sum, offset));
  }
  const int own = static_cast<int>(blockIdx.x) * 32 + part;
  if (lane == 0 && own < tiles.columns) write(own, sum);
}

template <class Fold, class Write>
void launch_fold_slices(const float* partial, const ColumnTiles& tiles, const Fold& fold,
                        const Write& write, const CudaDevice& device) {
  const unsigned blocks = static_cast<unsigned>((tiles.columns + 31) / 32);
  fold_slices<<<blocks, 1024, 0, device.stream>>>(partial, tiles, fold, write);
}

}  // namespace thimble
