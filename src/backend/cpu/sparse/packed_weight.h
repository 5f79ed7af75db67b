// Walks a sparse weight's mask in runs of elements, on every thread one: what expand and gather
// share.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "base/number/bits.h"

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

// One direction or the other between a dense tensor and its place in the pool, in f32.
class PackedKernel final : public Kernel {
 public:
  PackedKernel(bool gathers, int64_t elements, PackedLoop plain, PackedLoop wide)
      : gathers_(gathers), parts_(elements, plain, wide) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    const TensorRef& dense = gathers_ ? args.inputs[0] : args.outputs[0];
    const TensorRef& pool = gathers_ ? args.outputs[0] : args.inputs[0];
    if (gathers_ && !args.adds_into(0)) {
      std::memset(pool.data, 0, static_cast<size_t>(pool.type.bytes().count));
    }
    parts_.run(dense.as<float>(), pool.as<float>() + *args.inputs[1].as<const int64_t>(),
               args.inputs[2].as<const uint8_t>());
  }

 private:
  const bool gathers_;
  const PackedParts parts_;
};

// As CpuKernel::make, in f32.
template <bool kGathers, PackedLoop kPlain, PackedLoop kWide>
std::unique_ptr<Kernel> by_mask(const Signature& s) {
  const TensorType& dense = kGathers ? s.inputs[0] : s.outputs[0];
  if (dense.dtype != DType::f32 || dense.elements() == 0) return nullptr;
  return std::make_unique<PackedKernel>(kGathers, dense.elements(), kPlain, kWide);
}

}  // namespace thimble
