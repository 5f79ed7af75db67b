#include "backend/cpu/multiply/micro_kernel.h"

#include <algorithm>
#include <array>

#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

struct Fours {
  using Vector = float __attribute__((vector_size(16), aligned(4), may_alias));
  static constexpr int64_t kLanes = 4, kVectors = 2;
};
struct Eights {
  using Vector = float __attribute__((vector_size(32), aligned(4), may_alias));
  static constexpr int64_t kLanes = 8, kVectors = 2;
};
struct Sixteens {
  using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));
  static constexpr int64_t kLanes = 16, kVectors = 4;
};

template <class Lanes>
constexpr int64_t kWide = Lanes::kLanes* Lanes::kVectors;

// 12 vectors of sums, 2 of b and one of a are what 16 registers hold; twice as many what 32 do.
template <class Lanes>
THIMBLE_INLINE void multiply_tile(int64_t k, const TileOfA& a, const float* b, const TileOfY& y,
                                  bool add) {
  using Vector = typename Lanes::Vector;
  constexpr int64_t kVectors = Lanes::kVectors;
  const float* line[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) line[i] = a.data + std::min(i, y.rows - 1) * a.line;
  Vector sum[kTileRows][kVectors] = {};
  for (int64_t p = 0, at = 0; p < k; ++p, at += a.step, b += kWide<Lanes>) {
    Vector row[kVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      row[v] = *reinterpret_cast<const Vector*>(b + v * Lanes::kLanes);
    }
#pragma GCC unroll 6
    for (int64_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) sum[i][v] += row[v] * line[i][at];
    }
  }
  const bool whole = y.columns == kWide<Lanes>;
  for (int64_t i = 0; i < y.rows; ++i) {
    float* const out = y.data + i * y.pitch;
    if (whole) {
      auto* const vectors = reinterpret_cast<Vector*>(out);
      for (int64_t v = 0; v < kVectors; ++v) {
        vectors[v] = add ? vectors[v] + sum[i][v] : sum[i][v];
      }
      continue;
    }
    const auto* const numbers = reinterpret_cast<const float*>(sum[i]);
    for (int64_t j = 0; j < y.columns; ++j) out[j] = add ? out[j] + numbers[j] : numbers[j];
  }
}

void multiply_fours(int64_t k, const TileOfA& a, const float* b, const TileOfY& y, bool add) {
  multiply_tile<Fours>(k, a, b, y, add);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_eights(int64_t k, const TileOfA& a,
                                                         const float* b, const TileOfY& y,
                                                         bool add) {
  multiply_tile<Eights>(k, a, b, y, add);
}

__attribute__((target("avx512f"))) void multiply_sixteens(int64_t k, const TileOfA& a,
                                                          const float* b, const TileOfY& y,
                                                          bool add) {
  multiply_tile<Sixteens>(k, a, b, y, add);
}

constexpr std::array kKernels = {MicroKernel{"sse", kWide<Fours>, multiply_fours},
                                 MicroKernel{"avx2", kWide<Eights>, multiply_eights},
                                 MicroKernel{"avx512", kWide<Sixteens>, multiply_sixteens}};

size_t kernels_that_run() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512f") ? 3 : 2;
}
#else
constexpr std::array kKernels = {MicroKernel{"vectors of 4", kWide<Fours>, multiply_fours}};

size_t kernels_that_run() { return 1; }
#endif

}  // namespace

std::span<const MicroKernel> micro_kernels() {
  const std::span<const MicroKernel> all = kKernels;
  return all.first(kernels_that_run());
}

}  // namespace thimble
