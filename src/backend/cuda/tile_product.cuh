// One tile of a product of matrices, in float, by one block: for the small products that are fused
// with something else. Quarters of the block take turns along the depth and are added at the end, so
// that few tiles still keep many threads busy.
#pragma once

#include <cstdint>

namespace thimble {

struct TileProduct {
  static constexpr int kM = 32, kN = 64, kK = 16;
  static constexpr int kQuarters = 4, kQuarter = 128, kThreads = kQuarters * kQuarter;
  static constexpr int kOwnA = kM * kK / kQuarter, kOwnB = kN * kK / kQuarter;

  // Padded: rows are read four numbers at a time.
  struct alignas(16) Factors {
    float a[kK][kM + 4], b[kK][kN + 4];
  };
  union Shared {
    Factors factors[kQuarters];
    float sums[kQuarters - 1][16][kQuarter];
  };

  int quarter = static_cast<int>(threadIdx.x) / kQuarter;
  int own = static_cast<int>(threadIdx.x) % kQuarter;
  // A thread's 4 x 4 results begin here in the tile; the first quarter has them.
  int row = own / 16 * 4, column = own % 16 * 4;
  float sum[4][4] = {};

  __device__ bool has_results() const { return quarter == 0; }

  // a(m, k) and b(k, n) read factors, and give 0 outside of them. a_along, b_along: whether
  // neighbours along the depth are neighbours in memory. All threads must come here.
  template <class A, class B>
  __device__ void multiply(Shared& shared, int depth, bool a_along, bool b_along, const A& a,
                           const B& b) {
    Factors& factors = shared.factors[quarter];
    float next_a[kOwnA], next_b[kOwnB];
    const auto a_place = [&](int i, int& m, int& k) {
      m = a_along ? i / kK : i % kM;
      k = a_along ? i % kK : i / kM;
    };
    const auto b_place = [&](int i, int& n, int& k) {
      n = b_along ? i / kK : i % kN;
      k = b_along ? i % kK : i / kN;
    };
    const auto fetch = [&](int from) {
      int m, n, k;
#pragma unroll
      for (int i = 0; i < kOwnA; ++i) {
        a_place(own + i * kQuarter, m, k);
        next_a[i] = a(m, from + k);
      }
#pragma unroll
      for (int i = 0; i < kOwnB; ++i) {
        b_place(own + i * kQuarter, n, k);
        next_b[i] = b(from + k, n);
      }
    };
    const int turns = (depth + kQuarters * kK - 1) / (kQuarters * kK);
    fetch(quarter * kK);
    for (int turn = 0; turn < turns; ++turn) {
      int m, n, k;
#pragma unroll
      for (int i = 0; i < kOwnA; ++i) {
        a_place(own + i * kQuarter, m, k);
        factors.a[k][m] = next_a[i];
      }
#pragma unroll
      for (int i = 0; i < kOwnB; ++i) {
        b_place(own + i * kQuarter, n, k);
        factors.b[k][n] = next_b[i];
      }
      __syncthreads();
      if (turn + 1 < turns) fetch(((turn + 1) * kQuarters + quarter) * kK);
#pragma unroll
      for (int step = 0; step < kK; ++step) {
        const float4 left = *reinterpret_cast<const float4*>(&factors.a[step][row]);
        const float4 right = *reinterpret_cast<const float4*>(&factors.b[step][column]);
        const float of_a[4] = {left.x, left.y, left.z, left.w};
        const float of_b[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[i][j] += of_a[i] * of_b[j];
        }
      }
      __syncthreads();
    }
    if (quarter > 0) {
#pragma unroll
      for (int i = 0; i < 16; ++i) shared.sums[quarter - 1][i][own] = sum[i / 4][i % 4];
    }
    __syncthreads();
    if (quarter > 0) return;
    for (int q = 0; q < kQuarters - 1; ++q) {
#pragma unroll
      for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] += shared.sums[q][i][own];
    }
  }
};

}  // namespace thimble
