// Products of tiles on tensor cores, for attention: tiles of rows [size] lie in shared memory,
// products are summed in registers in f32. A warp multiplies 16 rows at a time. Of its sums [16,
// 8n], lane l has rows l / 4 and l / 4 + 8. Of every eight columns it has column 2 (l % 4) and the
// next:
//
//   sum[n][0], sum[n][1]  row l / 4        sum[n][2], sum[n][3]  row l / 4 + 8
//
// Such sums, rounded, are the left factor of the next product: nothing but rows that come from
// memory passes through shared memory.
//
// Numbers of 16 bits are multiplied as they are. Tensor cores take no more than 11 bits of an f32
// (TF32): RoundedFloat is one of which that is enough; of a float, what rounding leaves over is
// multiplied, too, which is three products in place of one (factor.cuh).
#pragma once

#include <cstdint>

#include "backend/cuda/attend/factor.cuh"

namespace thimble {

constexpr int kTensorThreads = 128;
constexpr int kTensorWarps = kTensorThreads / 32;
constexpr int kTileRows = 64;

// Columns of the 16 bytes that are copied at once; two of these go into a product.
template <class T>
constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
template <class T>
constexpr int kDepth = 2 * kChunk<T>;

// Where the 16 bytes from column kChunk * chunk of a row are. The chunks of a row are permuted, so
// that the same chunk of eight rows touches every bank once.
template <int kSize, class T>
__device__ inline int chunk_at(int row, int chunk) {
  static_assert(kSize == 32 || kSize == 64 || kSize == 128);
  const int turn = kSize / kChunk<T> == 4 ? (row >> 1) & 3 : row & 7;
  return row * kSize + (chunk ^ turn) * kChunk<T>;
}

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// Starts to copy kRows rows, `step` numbers apart, to a tile; zeros in place of those from `left`
// on. REQUIRES: left >= 1; rows begin at multiples of 16 bytes.
template <int kSize, int kRows, class T>
__device__ void copy_rows(T* tile, const T* from, int64_t step, int64_t left) {
#if THIMBLE_TENSOR_TILES
  constexpr int kChunks = kSize / kChunk<T>;
#pragma unroll
  for (int c = static_cast<int>(threadIdx.x); c < kRows * kChunks; c += kTensorThreads) {
    const int row = c / kChunks, chunk = c % kChunks;
    const bool there = row < left;
    const T* const source = from + (there ? row : 0) * step + chunk * kChunk<T>;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                     shared_address(tile + chunk_at<kSize, T>(row, chunk))),
                 "l"(source), "r"(there ? 16 : 0));
  }
#endif
}
__device__ inline void close_copies() {
#if THIMBLE_TENSOR_TILES
  asm volatile("cp.async.commit_group;\n" ::);
#endif
}
// Waits until at most kOpen groups of copies are under way.
template <int kOpen>
__device__ void await_copies() {
#if THIMBLE_TENSOR_TILES
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kOpen));
#endif
}

__device__ inline void load_matrices(uint32_t (&to)[4], const void* at) {
#if THIMBLE_TENSOR_TILES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(at)));
#endif
}
__device__ inline void load_turned_matrices(uint32_t (&to)[4], const void* at) {
#if THIMBLE_TENSOR_TILES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(at)));
#endif
}

// Rows [row, row + kDepth) and columns [column, column + 16) of a tile as a right factor, whose
// rows are in the order of a sum's columns.
template <int kSize, class T>
__device__ void load_turned(uint32_t (&to)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (sizeof(T) == 2) {
    load_turned_matrices(to, tile + chunk_at<kSize, T>(row + lane / 8 % 2 * 8 + lane % 8,
                                                       column / kChunk<T> + lane / 16));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = column + i / 2 * 8 + lane / 4, r = row + lane % 4 * 2 + i % 2;
      to[i] = reinterpret_cast<const uint32_t*>(
          tile)[chunk_at<kSize, T>(r, c / kChunk<T>) + c % kChunk<T>];
    }
  }
}

// Rows [row, row + 16) and columns [column, column + kDepth) of a tile as a left factor.
template <int kSize, class T>
__device__ void load_left(uint32_t (&left)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(left, tile + chunk_at<kSize, T>(row + lane % 16, column / kChunk<T> + lane / 16));
}

// sum [16, kRows] += left [16, kSize] tile', the tile being [kRows, kSize]. left(r, b, column)
// loads the left factor of kDepth columns.
template <int kSize, int kRows, int kBlocks, class T, class Left>
__device__ void add_row_products(float (&sum)[kBlocks][kRows / 8][4], const T* tile,
                                 const Left& left) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int column = 0; column < kSize; column += kDepth<T>) {
    Factor<T, 4> a[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t bits[4];
      left(bits, b, column);
      a[b] = Factor<T, 4>(bits);
    }
#pragma unroll
    for (int row = 0; row < kRows; row += 16) {
      uint32_t bits[4];
      load_matrices(bits, tile + chunk_at<kSize, T>(row + lane / 16 * 8 + lane % 8,
                                                    column / kChunk<T> + lane / 8 % 2));
      const Factor<T, 4> right(bits);
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        multiply_add<0>(sum[b][row / 8], a[b], right);
        multiply_add<2>(sum[b][row / 8 + 1], a[b], right);
      }
    }
  }
}

// sum [16, kSize] += left [16, kRows] tile, the tile being [kRows, kSize]; `left` holds the factors
// of kDepth rows each.
template <int kSize, int kRows, int kBlocks, class T>
__device__ void add_tile_products(float (&sum)[kBlocks][kSize / 8][4],
                                  const uint32_t (&left)[kBlocks][kRows / kDepth<T>][4],
                                  const T* tile) {
#pragma unroll
  for (int row = 0; row < kRows; row += kDepth<T>) {
    Factor<T, 4> a[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) a[b] = Factor<T, 4>(left[b][row / kDepth<T>]);
#pragma unroll
    for (int column = 0; column < kSize; column += 16) {
      uint32_t bits[4];
      load_turned<kSize>(bits, tile, row, column);
      const Factor<T, 4> right(bits);
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        multiply_add<0>(sum[b][column / 8], a[b], right);
        multiply_add<2>(sum[b][column / 8 + 1], a[b], right);
      }
    }
  }
}

template <class T>
__device__ uint32_t pair_of(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  } else {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  }
}

// Sums [16, kColumns] as left factors. In those of f32, column 2l of eight comes at place l and
// column 2l + 1 at place l + 4.
template <class T, int kColumns>
__device__ void round_to_left(const float (&sum)[kColumns / 8][4],
                              uint32_t (&left)[kColumns / kDepth<T>][4]) {
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
      left[k][0] = pair_of<T>(sum[2 * k][0], sum[2 * k][1]);
      left[k][1] = pair_of<T>(sum[2 * k][2], sum[2 * k][3]);
      left[k][2] = pair_of<T>(sum[2 * k + 1][0], sum[2 * k + 1][1]);
      left[k][3] = pair_of<T>(sum[2 * k + 1][2], sum[2 * k + 1][3]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < kColumns / 8; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) left[k][i] = __float_as_uint(sum[k][i % 2 * 2 + i / 2]);
    }
  }
}

// Two neighbours. REQUIRES: `to` is a multiple of both.
template <class T>
__device__ void store_pair(T* to, float low, float high) {
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<uint32_t*>(to) = pair_of<T>(low, high);
  } else {
    *reinterpret_cast<float2*>(to) = {low, high};
  }
}

// The lane's part of sums [16, kColumns], times a factor for each of its two rows, to rows `step`
// apart in memory; `left` of the 16 are there.
template <class T, int kColumns>
__device__ void store_sums(const float (&sum)[kColumns / 8][4], float upper, float lower, T* to,
                           int64_t step, int64_t left) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
    if (row < left) {
      store_pair(to + row * step + n * 8 + column, upper * sum[n][0], upper * sum[n][1]);
    }
    if (row + 8 < left) {
      store_pair(to + (row + 8) * step + n * 8 + column, lower * sum[n][2], lower * sum[n][3]);
    }
  }
}

}  // namespace thimble
