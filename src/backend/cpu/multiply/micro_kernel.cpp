#include "backend/cpu/multiply/micro_kernel.h"

#include <algorithm>
#include <array>

#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

struct Fours {
  using Vector = float __attribute__((vector_size(16), aligned(4), may_alias));
  static constexpr int64_t kWide = 8;
};
struct Eights {
  using Vector = float __attribute__((vector_size(32), aligned(4), may_alias));
  static constexpr int64_t kWide = 16;
};

// 12 vectors of sums, 2 of b and one of a: what 16 registers hold.
template <class Lanes>
THIMBLE_INLINE void multiply_tile(int64_t k, const TileOfA& a, const float* b, const TileOfY& y,
                                  bool add) {
  using Vector = typename Lanes::Vector;
  constexpr int64_t kWide = Lanes::kWide;
  const float* line[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) line[i] = a.data + std::min(i, y.rows - 1) * a.line;
  Vector sum[kTileRows][2] = {};
  for (int64_t p = 0, at = 0; p < k; ++p, at += a.step, b += kWide) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + kWide / 2);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kTileRows; ++i) {
      sum[i][0] += b0 * line[i][at];
      sum[i][1] += b1 * line[i][at];
    }
  }
  const bool whole = y.columns == kWide;
  for (int64_t i = 0; i < y.rows; ++i) {
    float* const out = y.data + i * y.pitch;
    if (whole) {
      auto* const vectors = reinterpret_cast<Vector*>(out);
      vectors[0] = add ? vectors[0] + sum[i][0] : sum[i][0];
      vectors[1] = add ? vectors[1] + sum[i][1] : sum[i][1];
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

constexpr std::array kKernels = {MicroKernel{"sse", Fours::kWide, multiply_fours},
                                 MicroKernel{"avx2", Eights::kWide, multiply_eights}};

bool runs_eights() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
constexpr std::array kKernels = {MicroKernel{"vectors of 4", Fours::kWide, multiply_fours}};

bool runs_eights() { return false; }
#endif

}  // namespace

std::span<const MicroKernel> micro_kernels() {
  const std::span<const MicroKernel> all = kKernels;
  return all.first(runs_eights() ? all.size() : 1);
}

}  // namespace thimble
