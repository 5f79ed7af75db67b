// expand: sixteen elements at a time where the processor can spread values by a mask itself.
#include "backend/cpu/sparse/packed_weight.h"

namespace thimble {
namespace {

void loop(float* dense, float* packed, const uint8_t* mask, int64_t begin, int64_t end) {
  std::fill(dense + begin, dense + end, 0.0f);
  for_each_one(mask, begin, end, [&](int64_t at) { dense[at] = *packed++; });
}

#if defined(__x86_64__)
THIMBLE_AVX512 void wide_loop(float* dense, float* packed, const uint8_t* mask, int64_t begin,
                              int64_t end) {
  int64_t at = begin;
  for (; at + kLanes <= end; at += kLanes) {
    const __mmask16 lanes = mask_lanes(mask, at);
    _mm512_storeu_ps(dense + at, _mm512_maskz_expandloadu_ps(lanes, packed));
    packed += __builtin_popcount(lanes);
  }
  loop(dense, packed, mask, at, end);
}
#else
constexpr PackedLoop wide_loop = nullptr;
#endif

}  // namespace

extern const CpuKernel cpu_expand{"expand", by_mask<false, loop, wide_loop>};

}  // namespace thimble
