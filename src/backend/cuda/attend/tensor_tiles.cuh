// Products of tiles on tensor cores, for attention in 16 bits: tiles of rows [size] lie in shared
// memory, products are summed in registers in f32. A warp multiplies 16 rows at a time; in its sums
// [16, 8n], lane l has rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next of every eight:
//
//   sum[n][0], sum[n][1]  row l / 4        sum[n][2], sum[n][3]  row l / 4 + 8
//
// Two neighbours of such sums, rounded, are the left factor of the next product: nothing but rows
// that come from memory passes through shared memory.
#pragma once

#include <cstdint>

#include "backend/cuda/numbers.cuh"

namespace thimble {

constexpr int kTensorThreads = 128;
constexpr int kTensorWarps = kTensorThreads / 32;
constexpr int kTileRows = 64;

// Where the 16 bytes from column 8 * chunk of a row are. The chunks of a row are permuted, so that the
// same chunk of eight rows touches every bank once.
template <int kSize>
__device__ inline int chunk_at(int row, int chunk) {
  static_assert(kSize == 32 || kSize == 64 || kSize == 128);
  const int turn = kSize == 32 ? (row >> 1) & 3 : row & 7;
  return row * kSize + (chunk ^ turn) * 8;
}

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// Tensor cores that multiply bf16, and copies that run on their own, came with compute capability
// 8.0; for older devices the kernels are empty and never launched.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define THIMBLE_TENSOR_TILES 1
#else
#define THIMBLE_TENSOR_TILES 0
#endif

// Starts to copy kRows rows, `step` numbers apart, to a tile; zeros in place of those from `left` on.
// REQUIRES: left >= 1; rows begin at multiples of 16 bytes.
template <int kSize, int kRows, class T>
__device__ void copy_rows(T* tile, const T* from, int64_t step, int64_t left) {
#if THIMBLE_TENSOR_TILES
  constexpr int kChunks = kSize / 8;
#pragma unroll
  for (int c = static_cast<int>(threadIdx.x); c < kRows * kChunks; c += kTensorThreads) {
    const int row = c / kChunks, chunk = c % kChunks;
    const bool there = row < left;
    const T* const source = from + (there ? row : 0) * step + chunk * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                     shared_address(tile + chunk_at<kSize>(row, chunk))),
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

// sum [16,8] += left [16,16] right [16,8]
template <class T>
__device__ void multiply_add(float (&sum)[4], const uint32_t (&left)[4], uint32_t right0,
                             uint32_t right1) {
#if THIMBLE_TENSOR_TILES
  if constexpr (std::is_same_v<T, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
#endif
}

// Rows [row, row + 16) and columns [column, column + 16) of a tile as a left factor.
template <int kSize, class T>
__device__ void load_left(uint32_t (&left)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(left, tile + chunk_at<kSize>(row + lane % 16, column / 8 + lane / 16));
}

// sum [16, kRows] += left [16, kSize] tile', the tile being [kRows, kSize]. left(r, column) loads the
// left factor of 16 columns.
template <int kSize, int kRows, int kBlocks, class T, class Left>
__device__ void add_row_products(float (&sum)[kBlocks][kRows / 8][4], const T* tile,
                                 const Left& left) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int column = 0; column < kSize; column += 16) {
    uint32_t a[kBlocks][4];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) left(a[b], b, column);
#pragma unroll
    for (int row = 0; row < kRows; row += 16) {
      uint32_t right[4];
      load_matrices(
          right, tile + chunk_at<kSize>(row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2));
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        multiply_add<T>(sum[b][row / 8], a[b], right[0], right[1]);
        multiply_add<T>(sum[b][row / 8 + 1], a[b], right[2], right[3]);
      }
    }
  }
}

// sum [16, kSize] += left [16, kRows] tile, the tile being [kRows, kSize]; `left` holds the factors
// of 16 rows each.
template <int kSize, int kRows, int kBlocks, class T>
__device__ void add_tile_products(float (&sum)[kBlocks][kSize / 8][4],
                                  const uint32_t (&left)[kBlocks][kRows / 16][4], const T* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < kRows; row += 16) {
#pragma unroll
    for (int column = 0; column < kSize; column += 16) {
      uint32_t right[4];
      load_turned_matrices(
          right, tile + chunk_at<kSize>(row + lane / 8 % 2 * 8 + lane % 8, column / 8 + lane / 16));
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        multiply_add<T>(sum[b][column / 8], left[b][row / 16], right[0], right[1]);
        multiply_add<T>(sum[b][column / 8 + 1], left[b][row / 16], right[2], right[3]);
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

// Sums [16, kColumns] as a left factor.
template <class T, int kColumns>
__device__ void round_to_left(const float (&sum)[kColumns / 8][4],
                              uint32_t (&left)[kColumns / 16][4]) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    left[k][0] = pair_of<T>(sum[2 * k][0], sum[2 * k][1]);
    left[k][1] = pair_of<T>(sum[2 * k][2], sum[2 * k][3]);
    left[k][2] = pair_of<T>(sum[2 * k + 1][0], sum[2 * k + 1][1]);
    left[k][3] = pair_of<T>(sum[2 * k + 1][2], sum[2 * k + 1][3]);
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
      *reinterpret_cast<uint32_t*>(to + row * step + n * 8 + column) =
          pair_of<T>(upper * sum[n][0], upper * sum[n][1]);
    }
    if (row + 8 < left) {
      *reinterpret_cast<uint32_t*>(to + (row + 8) * step + n * 8 + column) =
          pair_of<T>(lower * sum[n][2], lower * sum[n][3]);
    }
  }
}

}  // namespace thimble
