// Walks a sparse weight's mask in runs of elements, on every thread one: what expand and gather
// share.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "base/bits.h"

namespace thimble {

// Elements [begin, end) of a dense tensor, the first of which to be nonzero is at `packed`.
// `begin` is a multiple of kMaskRun.
using PackedLoop = void (*)(float* dense, float* packed, const uint8_t* mask, int64_t begin,
                            int64_t end);
inline constexpr int64_t kMaskRun = 64;

#if defined(__x86_64__)
#define THIMBLE_AVX512 __attribute__((target("avx512f,popcnt")))
inline constexpr int64_t kLanes = 16;

// The sixteen bits from element `at` on, a multiple of 8.
inline __mmask16 mask_lanes(const uint8_t* mask, int64_t at) {
  return static_cast<__mmask16>(mask[at / 8] | (mask[at / 8 + 1] << 8));
}
inline bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
#else
inline bool has_avx512() { return false; }
#endif

// Cuts the elements into parts and finds where each part's nonzeros begin.
class PackedParts {
 public:
  // `wide` is for processors with AVX-512, `plain` for all.
  PackedParts(int64_t elements, PackedLoop plain, PackedLoop wide)
      : elements_(elements),
        loop_(has_avx512() ? wide : plain),
        parts_((elements + kMaskRun - 1) / kMaskRun, 2 * kMaskRun) {}

  void run(float* dense, float* packed, const uint8_t* mask) const {
    parts_.run([&](int, int64_t first, int64_t last) {
      const int64_t begin = first * kMaskRun, end = std::min(last * kMaskRun, elements_);
      loop_(dense, packed + count_ones(mask, 0, begin), mask, begin, end);
    });
  }

 private:
  const int64_t elements_;
  const PackedLoop loop_;
  const Parts parts_;
};

// The dense tensor, its place in the pool and its mask, on every thread a part.
inline void run_packed(const PackedParts& parts, const TensorRef& dense, const TensorRef& pool,
                       const KernelArgs& args) {
  parts.run(dense.as<float>(), pool.as<float>() + *args.inputs[1].as<const int64_t>(),
            args.inputs[2].as<const uint8_t>());
}

// A kernel for f32, or null.
template <class K>
std::unique_ptr<Kernel> make_packed(const Signature& s, const TensorType& dense) {
  const bool fits = dense.dtype == DType::f32 && dense.elements() > 0;
  return fits ? std::make_unique<K>(s) : nullptr;
}

}  // namespace thimble
