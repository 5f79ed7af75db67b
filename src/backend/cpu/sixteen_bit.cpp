#include "backend/cpu/sixteen_bit.h"

#include <bit>

#include "backend/cpu/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void widen_bf16(const uint16_t* __restrict x, float* __restrict y,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = std::bit_cast<float>(uint32_t{x[i]} << 16);
}

// Branch-free form of base/number/dtype.h's conversion, same bits.
THIMBLE_FOR_EACH_ISA void narrow_bf16_plain(const float* __restrict x, uint16_t* __restrict y,
                                            int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto word = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    const uint32_t quiet = (word >> 16) | 0x40u;
    y[i] = static_cast<uint16_t>((word & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

void widen_f16_plain(const uint16_t* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(std::bit_cast<Half>(x[i]));
}

void narrow_f16_plain(const float* x, uint16_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = Half(x[i]).bits;
}

#if defined(__x86_64__)
using Words = uint32_t __attribute__((vector_size(64), aligned(4), may_alias));
using Halves = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));

// The processor's own conversion would take subnormal numbers for zeros.
__attribute__((target("avx512f"))) void narrow_bf16_avx512(const float* x, uint16_t* y,
                                                           int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Words word = *reinterpret_cast<const Words*>(x + i);
    const Words high = word >> 16;
    const Words rounded = (word + 0x7fffu + (high & 1u)) >> 16;
    const Words bits = (word & 0x7fffffffu) > 0x7f800000u ? (high | 0x40u) : rounded;
    *reinterpret_cast<Halves*>(y + i) = __builtin_convertvector(bits, Halves);
  }
  narrow_bf16_plain(x + i, y + i, count - i);
}

__attribute__((target("avx,f16c"))) void widen_f16_f16c(const uint16_t* x, float* y,
                                                        int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(halves));
  }
  widen_f16_plain(x + i, y + i, count - i);
}

__attribute__((target("avx,f16c"))) void narrow_f16_f16c(const float* x, uint16_t* y,
                                                         int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), halves);
  }
  narrow_f16_plain(x + i, y + i, count - i);
}
#endif

struct Conversions {
  void (*widen)(const uint16_t*, float*, int64_t);
  void (*narrow)(const float*, uint16_t*, int64_t);
};

Conversions fastest_bf16() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {widen_bf16, narrow_bf16_avx512};
#endif
  return {widen_bf16, narrow_bf16_plain};
}

Conversions fastest_f16() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("f16c")) return {widen_f16_f16c, narrow_f16_f16c};
#endif
  return {widen_f16_plain, narrow_f16_plain};
}

const Conversions& conversions(DType dtype) {
  static const Conversions f16 = fastest_f16(), bf16 = fastest_bf16();
  return dtype == DType::f16 ? f16 : bf16;
}

}  // namespace

void widen(DType dtype, const uint16_t* from, int64_t count, float* to) {
  conversions(dtype).widen(from, to, count);
}

void narrow(DType dtype, const float* from, int64_t count, uint16_t* to) {
  conversions(dtype).narrow(from, to, count);
}

void widen(const TensorRef& from, int64_t first, int64_t count, float* to) {
  widen(from.type.dtype, from.as<const uint16_t>() + first, count, to);
}

void narrow(const float* from, const TensorRef& to, int64_t first, int64_t count) {
  narrow(to.type.dtype, from, count, to.as<uint16_t>() + first);
}

}  // namespace thimble
