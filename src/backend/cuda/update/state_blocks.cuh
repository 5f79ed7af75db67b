// State in one byte a number: a warp for a block of 256, which shares a scale. A lane has two quads
// of it, 128 elements apart, so that the warp's accesses are of neighbours.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/update/dynamic_code.cuh"
#include "backend/cuda/update/update_extras.cuh"
#include "base/number/random_stream.h"

namespace thimble {

static_assert(kCodeBlock == 2 * 32 * 4);
constexpr unsigned kAllLanes = 0xffffffffu;

// The numbers of a lane.
struct LaneState {
  float at[8];
};

// Where a lane's quads are. Quad `h` of a block has elements [4 quad(h), 4 quad(h) + valid(h)).
class LanePlace {
 public:
  int64_t block;

  __device__ LanePlace(int64_t its_block, int64_t count) : block(its_block) {
    const int64_t left = count - kCodeBlock * block;
    left_ = left < kCodeBlock ? static_cast<int>(left) : static_cast<int>(kCodeBlock);
  }
  __device__ bool is_whole() const { return left_ == kCodeBlock; }
  __device__ int64_t quad(int h) const { return block * 64 + 32 * h + threadIdx.x % 32; }
  __device__ int valid(int h) const {
    const int left = left_ - 4 * (32 * h + static_cast<int>(threadIdx.x % 32));
    return min(max(left, 0), 4);
  }

 private:
  int left_;  // of the block
};

// Calls body(place) in all lanes of the warp that has the block, for every block of `count`
// numbers.
template <class Body>
__device__ void for_each_state_block(int64_t count, const Body& body) {
  const int64_t warps = gridDim.x * int64_t{blockDim.x / 32};
  const int64_t blocks = code_blocks(count);
  for (int64_t block = blockIdx.x * int64_t{blockDim.x / 32} + threadIdx.x / 32; block < blocks;
       block += warps) {
    body(LanePlace{block, count});
  }
}
inline unsigned grid_for_state(int64_t count, const CudaDevice& device) {
  return blocks_for(32 * code_blocks(count), device);
}

// Zeros where there is no element.
__device__ inline LaneState load_numbers(const Numbers& from, const LanePlace& place) {
  uint4 bits[2] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (place.valid(h) > 0) bits[h] = load_bits(from, place.quad(h), place.valid(h));
  }
  LaneState result;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const Quad quad = widen(bits[h], from.dtype);
#pragma unroll
    for (int e = 0; e < 4; ++e) result.at[4 * h + e] = quad.at[e];
  }
  return result;
}

// Stores what an update makes of its weight, output 0.
__device__ inline void store_weight(const Numbers& to, const LanePlace& place, const LaneState& x,
                                    const UpdateRounding& rounding) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (place.valid(h) == 0) continue;
    Quad quad = {x.at[4 * h], x.at[4 * h + 1], x.at[4 * h + 2], x.at[4 * h + 3]};
    rounding.apply(quad, to.dtype, place.quad(h), 0);
    store_quad(to, place.quad(h), quad, place.valid(h));
  }
}

// Stores the weight, rounded to the nearest, and what that leaves over.
__device__ inline void store_compensated(const Numbers& to, const Numbers& rest,
                                         const LanePlace& place, const LaneState& x) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (place.valid(h) == 0) continue;
    const Quad wide = {x.at[4 * h], x.at[4 * h + 1], x.at[4 * h + 2], x.at[4 * h + 3]};
    Quad rounded = wide, left = {};
    round_to(rounded, to.dtype);
#pragma unroll
    for (int e = 0; e < 4; ++e) left.at[e] = difference(wide.at[e], rounded.at[e]);
    store_quad(to, place.quad(h), rounded, place.valid(h));
    store_quad(rest, place.quad(h), left, place.valid(h));
  }
}

template <class Code>
__device__ LaneState decode_state(const uint8_t* codes, float scale, const LanePlace& place) {
  LaneState result;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int valid = place.valid(h);
    const uint8_t* const from = codes + 4 * place.quad(h);
    uint32_t four = 0;
    if (valid == 4) {
      four = *reinterpret_cast<const uint32_t*>(from);
    } else {
      for (int e = 0; e < valid; ++e) four |= static_cast<uint32_t>(from[e]) << (8 * e);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      result.at[4 * h + e] = product(scale, Code::decode((four >> (8 * e)) & 255u));
    }
  }
  return result;
}

// The largest of the lanes' words, in all of them.
__device__ inline uint32_t largest_of_warp(uint32_t word) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, word);
#else
  for (int step = 16; step > 0; step /= 2) {
    word = max(word, __shfl_xor_sync(kAllLanes, word, step));
  }
  return word;
#endif
}

// Writes the codes and the scale of the block; threshold(h) are those of the lane's quad h. A block
// with a number that is not finite gets a scale that is not.
template <class Code, class Threshold>
__device__ void encode_state(LaneState x, uint8_t* codes, float* scales, const LanePlace& place,
                             const Threshold& threshold) {
  if (!place.is_whole()) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i % 4 >= place.valid(i / 4)) x.at[i] = 0;
    }
  }
  // Magnitudes are in the order of their bits, and what is not finite is above all others.
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) most = max(most, __float_as_uint(x.at[i]) & 0x7fffffffu);
  most = largest_of_warp(most);
  const bool finite = most < 0x7f800000u;
  const bool codable = finite && most != 0;
  const auto scale = Code::scale(codable ? __uint_as_float(most) : 1.0f);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    uint32_t four = 0;
    if (codable) {
      const Quad thresholds = threshold(h);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        four |= Code::encode(x.at[4 * h + e], scale, thresholds.at[e]) << (8 * e);
      }
    }
    uint8_t* const to = codes + 4 * place.quad(h);
    if (const int valid = place.valid(h); valid == 4) {
      *reinterpret_cast<uint32_t*>(to) = four;
    } else {
      for (int e = 0; e < valid; ++e) to[e] = static_cast<uint8_t>(four >> (8 * e));
    }
  }
  if (threadIdx.x % 32 == 0) scales[place.block] = finite ? __uint_as_float(most) : NAN;
}

template <class Code>
__device__ void encode_state(const LaneState& x, uint8_t* codes, float* scales,
                             const LanePlace& place) {
  encode_state<Code>(x, codes, scales, place, [](int) { return Quad{0.5f, 0.5f, 0.5f, 0.5f}; });
}

// Codes of a state and its scales, before and after.
struct CodedState {
  const uint8_t* codes;
  const float* scales;
  uint8_t* next;
  float* next_scales;
};

// Thresholds that round at random.
__device__ inline Quad random_thresholds(const RandomStream& random, int64_t quad) {
  const PhiloxCounter words = random.words(quad);
  return {uniform_from(words[0]), uniform_from(words[1]), uniform_from(words[2]),
          uniform_from(words[3])};
}

// Adds a lane's shares to a block, rounding at random.
__device__ inline void fold_into_state(const CodedState& momentum, const LanePlace& place,
                                       const LaneState& share, const RandomStream& random) {
  LaneState m = decode_state<DeviceSignedCode>(momentum.codes, momentum.scales[place.block], place);
#pragma unroll
  for (int i = 0; i < 8; ++i) m.at[i] = sum(m.at[i], share.at[i]);
  encode_state<DeviceSignedCode>(m, momentum.next, momentum.next_scales, place,
                                 [&](int h) { return random_thresholds(random, place.quad(h)); });
}

}  // namespace thimble
