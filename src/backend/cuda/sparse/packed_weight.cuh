// Shared by expand, gather and gather_fold_8bit: where the nonzeros of a sparse weight are.
//
//   pool  [ ....... | w00 w01 w02 ... | ....... ]   nonzeros of all sparse weights
//                     ^ first                       this weight's, in the order of its elements
//   mask  one bit per element: nonzero or not (base/number/bits.h)
//
// A block has a chunk of the mask to itself: it counts the ones before its chunk, and walks through
// it by tiles. In a tile a warp takes a word of 32 elements at a time, a lane an element:
// neighbours in the tensor and in the pool are neighbours in the warp. One launch, nothing between
// blocks.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {

constexpr int kTileWords = 64;  // two for each lane of the warp that sums them up
constexpr int kWarps = kBlockThreads / 32;

struct PackedWeight {
  const uint8_t* mask;
  const int64_t* first;
  int64_t elements;
  int64_t tiles_per_block;

  // 32 elements from 32 * word on; those beyond the last are zero.
  __device__ uint32_t word(int64_t word) const {
    const int64_t left = elements - 32 * word;
    if (left >= 32) return reinterpret_cast<const uint32_t*>(mask)[word];
    uint32_t bits = 0;
    for (int64_t byte = 0; 8 * byte < left; ++byte) {
      bits |= static_cast<uint32_t>(mask[4 * word + byte]) << (8 * byte);
    }
    return left <= 0 ? 0 : bits & (0xffffffffu >> (32 - left));
  }
  __device__ int64_t words() const { return (elements + 31) / 32; }
  __device__ bool has_chunk(int64_t block) const {
    return block * tiles_per_block * kTileWords < words();
  }
};

// Sum over the block, in every thread.
__device__ inline int block_sum(int value) {
  __shared__ int sums[kWarps];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  int total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += sums[w];
  return total;
}

// Ones in the words [begin, end), in every thread. REQUIRES: begin is a multiple of 4.
__device__ inline int64_t ones_between(const PackedWeight& weight, int64_t begin, int64_t end) {
  const uint4* const fours = reinterpret_cast<const uint4*>(weight.mask);
  const int64_t whole = min(end, weight.elements / 32) / 4;
  int count = 0;
#pragma unroll 4
  for (int64_t i = begin / 4 + threadIdx.x; i < whole; i += kBlockThreads) {
    const uint4 four = fours[i];
    count += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
  }
  for (int64_t i = max(begin, 4 * whole) + threadIdx.x; i < end; i += kBlockThreads) {
    count += __popc(weight.word(i));
  }
  return block_sum(count);
}

// The words of the block's chunk.
struct Chunk {
  int64_t begin, end;
};
__device__ inline Chunk chunk_of_block(const PackedWeight& weight) {
  const int64_t words_per_block = weight.tiles_per_block * kTileWords;
  const int64_t begin = blockIdx.x * words_per_block;
  return {begin, min(begin + words_per_block, weight.words())};
}

// Calls body(element, is one, place in the pool) for every element of the tile that begins with
// word `tile`; `next` is the place of its first one. Beyond the last element lanes have one
// >= elements, and no one. Returns how many ones there are. The block is synchronised before the
// first call of body, not after the last.
template <class Body>
__device__ int walk_tile(const PackedWeight& weight, int64_t tile, int64_t next, const Body& body) {
  __shared__ uint32_t bits[kTileWords];
  __shared__ int before[kTileWords];
  __shared__ int tile_ones;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t lower_lanes = (1u << lane) - 1;
  __syncthreads();
  if (warp == 0) {
    const uint32_t even = weight.word(tile + 2 * lane), odd = weight.word(tile + 2 * lane + 1);
    const int ones = __popc(even) + __popc(odd);
    int upto = ones;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, upto, step);
      if (lane >= step) upto += other;
    }
    bits[2 * lane] = even;
    bits[2 * lane + 1] = odd;
    before[2 * lane] = upto - ones;
    before[2 * lane + 1] = upto - __popc(odd);
    if (lane == 31) tile_ones = upto;
  }
  __syncthreads();
#pragma unroll
  for (int w = warp; w < kTileWords; w += kWarps) {
    const uint32_t word = bits[w];
    body(32 * (tile + w) + lane, ((word >> lane) & 1u) != 0,
         next + before[w] + __popc(word & lower_lanes));
  }
  return tile_ones;
}

// Calls body as walk_tile() does for the tiles of the block's chunk. REQUIRES: the block has one.
template <class Body>
__device__ void walk_chunk(const PackedWeight& weight, const Body& body) {
  const Chunk chunk = chunk_of_block(weight);
  int64_t next = *weight.first + ones_between(weight, 0, chunk.begin);
  for (int64_t tile = chunk.begin; tile < chunk.end; tile += kTileWords) {
    next += walk_tile(weight, tile, next, body);
  }
}

// Small weights get a block per tile; large ones as many blocks as keep the device busy, since each
// reads all of the mask before its chunk.
struct PackedGrid {
  unsigned blocks;
  int64_t tiles_per_block;
};
inline PackedGrid packed_grid(int64_t elements, const CudaDevice& device) {
  const int64_t tiles = (elements + 32 * kTileWords - 1) / (32 * kTileWords);
  const int64_t most = int64_t{device.multiprocessors} * 2;
  const int64_t per_block = std::max<int64_t>(1, (tiles + most - 1) / most);
  return {static_cast<unsigned>(std::max<int64_t>(1, (tiles + per_block - 1) / per_block)),
          per_block};
}

}  // namespace thimble
