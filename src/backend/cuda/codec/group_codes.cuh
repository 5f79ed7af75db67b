// base/number/group_quantization.h on the device. A group is 256 numbers: eight for each lane of a
// warp, whose codes fill as many bytes as a code has bits.
#pragma once

#include "backend/cuda/pointwise/eights.cuh"
#include "base/number/group_quantization.h"

namespace thimble {

static_assert(kCodeGroup == 32 * 8);

// The codes of a lane.
template <int kBits>
using LaneCodes =
    std::conditional_t<kBits == 2, uint16_t, std::conditional_t<kBits <= 4, uint32_t, uint64_t>>;
// Whether they are loaded and stored as one word.
template <int kBits>
inline constexpr bool kWholeWord = sizeof(LaneCodes<kBits>) == kBits;

// Of the eight numbers from `first` on; what no number of `count` needs is neither read nor
// written.
template <int kBits>
__device__ LaneCodes<kBits> load_codes(const uint8_t* packed, int64_t first, int64_t count) {
  const int64_t lane = first / 8;
  if (kWholeWord<kBits> && first + 8 <= count) {
    return reinterpret_cast<const LaneCodes<kBits>*>(packed)[lane];
  }
  uint64_t codes = 0;
#pragma unroll
  for (int b = 0; b < kBits; ++b) {
    if (lane * kBits + b < packed_bytes(count, kBits)) {
      codes |= static_cast<uint64_t>(packed[lane * kBits + b]) << (8 * b);
    }
  }
  return static_cast<LaneCodes<kBits>>(codes);
}

template <int kBits>
__device__ void store_codes(uint8_t* packed, int64_t first, int64_t count, LaneCodes<kBits> codes) {
  const int64_t lane = first / 8;
  if (kWholeWord<kBits> && first + 8 <= count) {
    reinterpret_cast<LaneCodes<kBits>*>(packed)[lane] = codes;
    return;
  }
#pragma unroll
  for (int b = 0; b < kBits; ++b) {
    if (lane * kBits + b < packed_bytes(count, kBits)) {
      packed[lane * kBits + b] = static_cast<uint8_t>(codes >> (8 * b));
    }
  }
}

}  // namespace thimble
