// The gradients of attention on tensor cores, in two passes over the scores that write without
// meeting: one for the queries' gradients, one for those of keys and values, in which scores are held
// turned, [keys, queries], so that the sums over queries are a warp's own. Both compute the
// probabilities again; the sums have one order.
#pragma once

#include "backend/cuda/attend/tensor_attention.cuh"

namespace thimble {

// Two tiles stay; two and the next two come and go. Then the numbers of 64 queries, and of the next.
template <int kSize, class T>
constexpr size_t gradient_shared_bytes() {
  return 6 * kTileRows * kSize * sizeof(T) + 4 * kTileRows * sizeof(float);
}

// delta = dy . y, of as many lanes as a row has chunks.
template <class T, int kSize>
__global__ void __launch_bounds__(kTensorThreads)
    row_deltas(AttentionGeometry g, AttentionGradients<T> d) {
  constexpr int kLanes = kSize / kChunk<T>;
  const int64_t count = g.rows * g.queries * g.heads;
  const int64_t unit = (blockIdx.x * int64_t{kTensorThreads} + threadIdx.x) / kLanes;
  const int64_t own = min(unit, count - 1) * kSize + threadIdx.x % kLanes * kChunk<T>;
  const Pack<T> y = *reinterpret_cast<const Pack<T>*>(d.y + own);
  const Pack<T> dy = *reinterpret_cast<const Pack<T>*>(d.dy + own);
  float sum = 0;
#pragma unroll
  for (int e = 0; e < kChunk<T>; ++e) sum += widen(y.at[e]) * widen(dy.at[e]);
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(~0u, sum, offset);
  }
  if (unit < count && threadIdx.x % kLanes == 0) {
    const int64_t head = unit % g.heads, i = unit / g.heads % g.queries;
    d.delta[g.lse_at(unit / g.heads / g.queries, i, head)] = sum;
  }
}

template <class T, int kSize, bool kDrop>
__global__ void __launch_bounds__(kTensorThreads)
    query_tile_gradients(AttentionCall<T> call, AttentionGradients<T> d) {
#if THIMBLE_TENSOR_TILES
  constexpr int kTile = kTileRows * kSize;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  T* const dy_tile = q_tile + kTile;
  T* const kv_tiles = dy_tile + kTile;
  const AttentionGeometry& g = call.g;
  const int64_t query = int64_t{gridDim.x - 1 - blockIdx.x} * kTileRows;  // the longest work first
  const int64_t head = blockIdx.y, n = blockIdx.z, length = call.length(n);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int64_t last_query = min(g.queries, query + kTileRows) - 1;
  const int visible = static_cast<int>(g.visible(last_query, length));
  const int visible_to_all = static_cast<int>(g.visible(query, length));
  const auto copy_keys = [&](int key) {
    T* const to = kv_tiles + key / kTileRows % 2 * 2 * kTile;
    const int64_t at = g.key_at(n, key, head), left = g.keys - key;
    copy_rows<kSize, kTileRows>(to, call.k + at, g.key_step, left);
    copy_rows<kSize, kTileRows>(to + kTile, call.v + at, g.key_step, left);
  };
  copy_rows<kSize, kTileRows>(q_tile, call.q + g.query_at(n, query, head), g.query_step,
                              g.queries - query);
  copy_rows<kSize, kTileRows>(dy_tile, d.dy + g.result_at(n, query, head), g.heads * g.size,
                              g.queries - query);
  if (visible > 0) copy_keys(0);
  close_copies();

  const float scale2 = static_cast<float>(g.scale) * kLog2e;
  float lse2[2], delta[2];
  int64_t own[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    own[r] = min(query + first_row + lane / 4 + 8 * r, g.queries - 1);
    lse2[r] = d.lse[g.lse_at(n, own[r], head)] * kLog2e;
    delta[r] = d.delta[g.lse_at(n, own[r], head)];
  }
  const auto queries_at = [&](uint32_t(&left)[4], int, int column) {
    load_left<kSize>(left, q_tile, first_row, column);
  };
  const auto gradients_at = [&](uint32_t(&left)[4], int, int column) {
    load_left<kSize>(left, dy_tile, first_row, column);
  };
  const float kept_scale = kDrop ? static_cast<float>(1 / (1 - g.drop)) : 1.0f;
  float dq[1][kSize / 8][4] = {};
  for (int key = 0; key < visible; key += kTileRows) {
    if (key + kTileRows < visible) copy_keys(key + kTileRows);
    close_copies();
    await_copies<1>();
    __syncthreads();
    const T* const k_tile = kv_tiles + key / kTileRows % 2 * 2 * kTile;
    float p[1][kTileRows / 8][4] = {}, dp[1][kTileRows / 8][4] = {};
    add_row_products<kSize, kTileRows>(p, k_tile, queries_at);
    add_row_products<kSize, kTileRows>(dp, k_tile + kTile, gradients_at);
    const bool all_seen = key + kTileRows <= visible_to_all;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int seen = static_cast<int>(g.visible(own[r], length)) - key;
      uint32_t bits = 0;  // of two times eight columns
#pragma unroll
      for (int c = 0; c < kTileRows / 8; ++c) {
        if constexpr (kDrop) {
          if (c % 2 == 0) {
            const KeptKeys kept(g, call.rng);
            bits = kept_pairs(kept, g.random_element(n, own[r], head) + key + c * 8);
          }
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const bool sees = all_seen || c * 8 + lane % 4 * 2 + e < seen;
          const float probability = exp2f(p[0][c][2 * r + e] * scale2 - lse2[r]);
          const float factor = !kDrop ? 1 : (bits >> (c % 2 * 2 + e) & 1u) != 0 ? kept_scale : 0;
          p[0][c][2 * r + e] = sees ? probability * (factor * dp[0][c][2 * r + e] - delta[r]) : 0;
        }
      }
    }
    uint32_t left[1][kTileRows / kDepth<T>][4];
    round_to_left<T, kTileRows>(p[0], left[0]);
    add_tile_products<kSize, kTileRows>(dq, left, k_tile);
    __syncthreads();
  }
  await_copies<0>();
  const float scale = static_cast<float>(g.scale);
  store_sums<T, kSize>(dq[0], scale, scale, d.dq + g.query_at(n, query + first_row, head),
                       g.query_step, g.queries - query - first_row);
#endif
}

// Which of the lane's four scores of eight turned columns are kept: bit 2 * r + e is row r, column e.
// Four lanes share the four keys of a draw: each draws for one of the four, and gets from each of the
// others the word of its own key. element(r, e): the random element of the first of those keys.
template <class Element>
__device__ uint32_t kept_turned(const KeptKeys& kept, const Element& element) {
  const int lane = static_cast<int>(threadIdx.x) % 32, own = lane / 4 % 4;
  const PhiloxCounter words = kept.words(element(own / 2, own % 2) / 4);
  uint32_t bits = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int theirs = (own + k) % 4, from = (own + 4 - k) % 4;
    const uint32_t given =
        theirs < 2 ? (theirs == 0 ? words[0] : words[1]) : (theirs == 2 ? words[2] : words[3]);
    const uint32_t word = __shfl_sync(~0u, given, lane / 16 * 16 + from * 4 + lane % 4);
    bits |= (kept.keeps(word) ? 1u : 0u) << from;
  }
  return bits;
}

template <class T, int kSize, bool kDrop>
__global__ void __launch_bounds__(kTensorThreads)
    key_tile_gradients(AttentionCall<T> call, AttentionGradients<T> d) {
#if THIMBLE_TENSOR_TILES
  constexpr int kTile = kTileRows * kSize;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const k_tile = reinterpret_cast<T*>(shared);
  T* const v_tile = k_tile + kTile;
  T* const query_tiles = v_tile + kTile;  // q, dy, and the next of both
  float* const row_numbers = reinterpret_cast<float*>(query_tiles + 4 * kTile);  // lse, delta, ...
  const AttentionGeometry& g = call.g;
  const int64_t key = int64_t{blockIdx.x} * kTileRows, n = blockIdx.z, length = call.length(n);
  const int64_t shared_by = g.heads / g.groups, first_head = blockIdx.y * shared_by;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int64_t ahead = g.keys - g.queries;
  const int64_t sees_first = g.causal && key > ahead ? (key - ahead) / kTileRows * kTileRows : 0;
  const int tiles = static_cast<int>((g.queries - sees_first + kTileRows - 1) / kTileRows);
  const int turns = key < length ? tiles * static_cast<int>(shared_by) : 0;
  const auto head_of = [&](int turn) { return first_head + turn / tiles; };
  const auto query_of = [&](int turn) { return sees_first + turn % tiles * kTileRows; };
  const auto copy_queries = [&](int turn) {
    const int64_t head = head_of(turn), query = query_of(turn), left = g.queries - query;
    T* const to = query_tiles + turn % 2 * 2 * kTile;
    copy_rows<kSize, kTileRows>(to, call.q + g.query_at(n, query, head), g.query_step, left);
    copy_rows<kSize, kTileRows>(to + kTile, d.dy + g.result_at(n, query, head), g.heads * g.size,
                                left);
    float* const numbers = row_numbers + turn % 2 * 2 * kTileRows;
    const int row = static_cast<int>(threadIdx.x) % kTileRows;
    const bool there = row < left;
    const int64_t at = g.lse_at(n, there ? query + row : query, head);
    // A query that is not there has no probabilities.
    if (threadIdx.x < kTileRows) {
      numbers[row] = there ? d.lse[at] * kLog2e : INFINITY;
    } else {
      numbers[kTileRows + row] = there ? d.delta[at] : 0;
    }
  };
  const int64_t at = g.key_at(n, key, first_head);
  copy_rows<kSize, kTileRows>(k_tile, call.k + at, g.key_step, g.keys - key);
  copy_rows<kSize, kTileRows>(v_tile, call.v + at, g.key_step, g.keys - key);
  if (turns > 0) copy_queries(0);
  close_copies();

  const float scale2 = static_cast<float>(g.scale) * kLog2e;
  const auto keys_at = [&](uint32_t(&left)[4], int, int column) {
    load_left<kSize>(left, k_tile, first_row, column);
  };
  const auto values_at = [&](uint32_t(&left)[4], int, int column) {
    load_left<kSize>(left, v_tile, first_row, column);
  };
  const float kept_scale = kDrop ? static_cast<float>(1 / (1 - g.drop)) : 1.0f;
  float dk[1][kSize / 8][4] = {}, dv[1][kSize / 8][4] = {};
  for (int turn = 0; turn < turns; ++turn) {
    if (turn + 1 < turns) copy_queries(turn + 1);
    close_copies();
    await_copies<1>();
    __syncthreads();
    const int64_t query = query_of(turn), head = head_of(turn);
    const T* const q_tile = query_tiles + turn % 2 * 2 * kTile;
    const T* const dy_tile = q_tile + kTile;
    const float* const numbers = row_numbers + turn % 2 * 2 * kTileRows;
    float p[1][kTileRows / 8][4] = {}, dp[1][kTileRows / 8][4] = {};
    add_row_products<kSize, kTileRows>(p, q_tile, keys_at);
    add_row_products<kSize, kTileRows>(dp, dy_tile, values_at);
    const bool all_seen = key + kTileRows <= g.visible(query, length);
#pragma unroll
    for (int c = 0; c < kTileRows / 8; ++c) {
      uint32_t bits = 0;
      if constexpr (kDrop) {
        bits = kept_turned(KeptKeys(g, call.rng), [&](int r, int e) {
          const int64_t own = min(query + c * 8 + lane % 4 * 2 + e, g.queries - 1);
          return g.random_element(n, own, head) + key + first_row + 8 * r + lane / 16 * 4;
        });
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = c * 8 + lane % 4 * 2 + e;
        const float lse2 = numbers[column], delta = numbers[kTileRows + column];
        const int64_t seen = g.visible(query + column, length) - key;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = first_row + lane / 4 + 8 * r;
          const bool sees = all_seen || row < seen;
          float& probability = p[0][c][2 * r + e];
          probability = sees ? exp2f(probability * scale2 - lse2) : 0;
          const float factor = !kDrop ? 1 : (bits >> (2 * r + e) & 1u) != 0 ? kept_scale : 0;
          float& gradient = dp[0][c][2 * r + e];
          gradient = probability * (factor * gradient - delta);
          probability *= factor;
        }
      }
    }
    uint32_t left[1][kTileRows / kDepth<T>][4];
    round_to_left<T, kTileRows>(p[0], left[0]);
    add_tile_products<kSize, kTileRows>(dv, left, dy_tile);
    round_to_left<T, kTileRows>(dp[0], left[0]);
    add_tile_products<kSize, kTileRows>(dk, left, q_tile);
    __syncthreads();
  }
  await_copies<0>();
  const float scale = static_cast<float>(g.scale);
  const int64_t to = g.key_at(n, key + first_row, first_head), left = g.keys - key - first_row;
  store_sums<T, kSize>(dk[0], scale, scale, d.dk + to, g.key_step, left);
  store_sums<T, kSize>(dv[0], 1, 1, d.dv + to, g.key_step, left);
#endif
}

}  // namespace thimble
