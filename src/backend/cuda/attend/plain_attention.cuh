// Attention for any type and head size: a warp per query, or per key where the sums go over
// queries. Its lanes take 32 partners at a time, each the products with one of them; then all lanes
// share the channels of the result.
#pragma once

#include "backend/cuda/attend/attention_call.cuh"

namespace thimble {

constexpr int kPlainWarps = 4;
constexpr int kPlainThreads = 32 * kPlainWarps;

__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ inline float warp_largest(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}

// One row [size] of a tensor as floats that the whole warp reads.
template <class T>
__device__ void stage_row(const T* from, int size, float factor, float* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int d = lane; d < size; d += 32) to[d] = factor * widen(from[d]);
  __syncwarp();
}
template <class T>
__device__ float row_product(const float* row, const T* other, int size) {
  float sum = 0;
  for (int d = 0; d < size; ++d) sum += row[d] * widen(other[d]);
  return sum;
}
// The channels of a lane: lane, lane + 32, ...
template <class T, int kChannels>
__device__ void add_row(float (&sum)[kChannels], float factor, const T* row, int size) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int e = 0; e < kChannels; ++e) {
    if (lane + 32 * e < size) sum[e] += factor * widen(row[lane + 32 * e]);
  }
}
template <class T, int kChannels>
__device__ void store_row(const float (&sum)[kChannels], float factor, T* row, int size) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int e = 0; e < kChannels; ++e) {
    if (lane + 32 * e < size) row[lane + 32 * e] = narrow<T>(factor * sum[e]);
  }
}

// The warp's unit of work, of `count`; -1: none is left.
__device__ inline int64_t warp_unit(int64_t count) {
  const int64_t unit = blockIdx.x * int64_t{kPlainWarps} + threadIdx.x / 32;
  return unit < count ? unit : -1;
}

// A query of a head of one row of the batch, the unit's.
struct QueryPlace {
  int64_t i, head, n;

  __device__ QueryPlace(const AttentionGeometry& g, int64_t unit)
      : i(unit % g.queries), head(unit / g.queries % g.heads), n(unit / g.queries / g.heads) {}
};

template <class T, int kChannels>
__global__ void __launch_bounds__(kPlainThreads)
    attend_rows(AttentionCall<T> call, T* y, float* lse) {
  extern __shared__ float rows[];
  const AttentionGeometry& g = call.g;
  const int64_t unit = warp_unit(g.rows * g.heads * g.queries);
  if (unit < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, size = static_cast<int>(g.size);
  const auto [i, head, n] = QueryPlace(g, unit);
  float* const q = rows + threadIdx.x / 32 * size;
  stage_row(call.q + g.query_at(n, i, head), size, static_cast<float>(g.scale), q);
  const int64_t seen_from = call.first(n, i), visible = g.visible(i, call.length(n));
  float sum[kChannels] = {}, largest = -INFINITY, total = 0;
  for (int64_t first = seen_from; first < visible; first += 32) {
    const int64_t j = first + lane;
    const float s = j < visible ? row_product(q, call.k + g.key_at(n, j, head), size) : -INFINITY;
    const float before = largest;
    largest = fmaxf(largest, warp_largest(s));
    const float fade = expf(before - largest);
    float p = expf(s - largest);
    total = total * fade + warp_sum(p);
    if (g.drop > 0 && j < visible) {
      const KeptKeys kept(g, call.rng);
      p = kept.keeps(g.random_element(n, i, head) + j) ? p * kept.scale : 0;
    }
#pragma unroll
    for (int e = 0; e < kChannels; ++e) sum[e] *= fade;
    for (int other = 0; other < 32 && first + other < visible; ++other) {
      add_row(sum, __shfl_sync(~0u, p, other), call.v + g.key_at(n, first + other, head), size);
    }
  }
  store_row(sum, total == 0 ? 0 : 1 / total, y + g.result_at(n, i, head), size);
  if (lane == 0) lse[g.lse_at(n, i, head)] = largest + logf(total);
}

// dq, and the products of dy and y that the other gradients read, too.
template <class T, int kChannels>
__global__ void __launch_bounds__(kPlainThreads)
    query_row_gradients(AttentionCall<T> call, AttentionGradients<T> d) {
  extern __shared__ float rows[];
  const AttentionGeometry& g = call.g;
  const int64_t unit = warp_unit(g.rows * g.heads * g.queries);
  if (unit < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, size = static_cast<int>(g.size);
  const auto [i, head, n] = QueryPlace(g, unit);
  float* const q = rows + threadIdx.x / 32 * 2 * size;
  float* const dy = q + size;
  stage_row(call.q + g.query_at(n, i, head), size, static_cast<float>(g.scale), q);
  stage_row(d.dy + g.result_at(n, i, head), size, 1, dy);
  float own = 0;
  for (int c = lane; c < size; c += 32) own += dy[c] * widen(d.y[g.result_at(n, i, head) + c]);
  const float delta = warp_sum(own), lse = d.lse[g.lse_at(n, i, head)];
  if (lane == 0) d.delta[g.lse_at(n, i, head)] = delta;
  const int64_t seen_from = call.first(n, i), visible = g.visible(i, call.length(n));
  float sum[kChannels] = {};
  for (int64_t first = seen_from; first < visible; first += 32) {
    const int64_t j = first + lane;
    float ds = 0;
    if (j < visible) {
      const float p = expf(row_product(q, call.k + g.key_at(n, j, head), size) - lse);
      float dp = row_product(dy, call.v + g.key_at(n, j, head), size);
      if (g.drop > 0) {
        const KeptKeys kept(g, call.rng);
        dp = kept.keeps(g.random_element(n, i, head) + j) ? dp * kept.scale : 0;
      }
      ds = p * (dp - delta);
    }
    for (int other = 0; other < 32 && first + other < visible; ++other) {
      add_row(sum, __shfl_sync(~0u, ds, other), call.k + g.key_at(n, first + other, head), size);
    }
  }
  store_row(sum, static_cast<float>(g.scale), d.dq + g.query_at(n, i, head), size);
}

// dk and dv, over all queries that see the key, of all heads that read it.
template <class T, int kChannels>
__global__ void __launch_bounds__(kPlainThreads)
    key_row_gradients(AttentionCall<T> call, AttentionGradients<T> d) {
  extern __shared__ float rows[];
  const AttentionGeometry& g = call.g;
  const int64_t unit = warp_unit(g.rows * g.groups * g.keys);
  if (unit < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, size = static_cast<int>(g.size);
  const int64_t j = unit % g.keys, n = unit / g.keys / g.groups, shared = g.heads / g.groups;
  const int64_t first_head = unit / g.keys % g.groups * shared;
  const int64_t at = g.key_at(n, j, first_head), length = call.length(n);
  float* const k = rows + threadIdx.x / 32 * 2 * size;
  float* const v = k + size;
  stage_row(call.k + at, size, static_cast<float>(g.scale), k);
  stage_row(call.v + at, size, 1, v);
  float dk[kChannels] = {}, dv[kChannels] = {};
  const int64_t sees_first = g.causal && j > g.keys - g.queries ? j - (g.keys - g.queries) : 0;
  for (int64_t head = first_head; head < first_head + shared; ++head) {
    for (int64_t first = sees_first; first < g.queries; first += 32) {
      const int64_t i = first + lane;
      float p = 0, ds = 0;
      const bool sees = i < g.queries && j < g.visible(i, length) && j >= call.first(n, i);
      if (call.begins != nullptr && !__any_sync(~0u, sees)) continue;
      if (sees) {
        p = expf(row_product(k, call.q + g.query_at(n, i, head), size) -
                 d.lse[g.lse_at(n, i, head)]);
        float dp = row_product(v, d.dy + g.result_at(n, i, head), size), factor = 1;
        if (g.drop > 0) {
          const KeptKeys kept(g, call.rng);
          factor = kept.keeps(g.random_element(n, i, head) + j) ? kept.scale : 0;
        }
        ds = p * (factor * dp - d.delta[g.lse_at(n, i, head)]);
        p *= factor;
      }
      for (int other = 0; other < 32 && first + other < g.queries; ++other) {
        const int64_t query = first + other;
        add_row(dk, __shfl_sync(~0u, ds, other), call.q + g.query_at(n, query, head), size);
        add_row(dv, __shfl_sync(~0u, p, other), d.dy + g.result_at(n, query, head), size);
      }
    }
  }
  store_row(dk, static_cast<float>(g.scale), d.dk + at, size);
  store_row(dv, 1, d.dv + at, size);
}

constexpr int64_t kMostPlainChannels = 1024;

// Calls body(channels of a lane as an integral constant). REQUIRES: size <= kMostPlainChannels.
template <class Body>
void with_plain_channels(int64_t size, const Body& body) {
  if (size <= 128) {
    body(std::integral_constant<int, 4>{});
  } else if (size <= 256) {
    body(std::integral_constant<int, 8>{});
  } else {
    body(std::integral_constant<int, 32>{});
  }
}
inline unsigned plain_blocks(int64_t units) {
  return static_cast<unsigned>((units + kPlainWarps - 1) / kPlainWarps);
}
inline size_t plain_shared(const AttentionGeometry& g, int rows_each) {
  return static_cast<size_t>(kPlainWarps * rows_each * g.size) * sizeof(float);
}

}  // namespace thimble
