// gather: sixteen elements at a time where the processor can close gaps by a mask itself. Always
// adds: where the pool is to be written, it is cleared first, and a sum with zero is the number.
#include "backend/cpu/sparse/packed_weight.h"

namespace thimble {
namespace {

void loop(float* dense, float* packed, const uint8_t* mask, int64_t begin, int64_t end) {
  for_each_one(mask, begin, end, [&](int64_t at) { *packed++ += dense[at]; });
}

#if defined(__x86_64__)
THIMBLE_AVX512 void wide_loop(float* dense, float* packed, const uint8_t* mask, int64_t begin,
                              int64_t end) {
  int64_t at = begin;
  for (; at + kLanes <= end; at += kLanes) {
    const __mmask16 lanes = mask_lanes(mask, at);
    const int count = __builtin_popcount(lanes);
    const auto low = static_cast<__mmask16>((1u << count) - 1);
    const __m512 share = _mm512_maskz_compress_ps(lanes, _mm512_loadu_ps(dense + at));
    const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(low, packed), share);
    _mm512_mask_storeu_ps(packed, low, sum);
    packed += count;
  }
  loop(dense, packed, mask, at, end);
}
#else
constexpr PackedLoop wide_loop = nullptr;
#endif

}  // namespace

extern const CpuKernel cpu_gather{"gather", by_mask<true, loop, wide_loop>};

}  // namespace thimble
