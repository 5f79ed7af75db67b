// The gradients of attention on tensor cores, in two passes over the scores that write without
// meeting: one for the queries' gradients, one for those of keys and values, in which scores are
// held turned, [keys, queries], so that the sums over queries are a warp's own. Both compute the
// probabilities again; the sums have one order.
#pragma once

#include "backend/cuda/attend/tensor_attention.cuh"

namespace thimble {

// Blocks of 16 rows that a warp takes, of queries or of keys: as many as leave their sums in
// registers. The more it takes at once, the less often shared memory is read.
constexpr int gradient_blocks(int64_t size, int64_t number_bytes) {
  return size <= 64 && number_bytes == 2 ? 2 : 1;
}
template <int kSize, class T>
constexpr int kGradientBlocks = gradient_blocks(kSize, sizeof(T));
// The rows of a tile that stays, and of those that come and go.
template <int kSize, class T>
constexpr int kOwnRows = 16 * kTensorWarps* kGradientBlocks<kSize, T>;
template <int kSize, class T>
constexpr int kPassingQueries = kTileRows / kGradientBlocks<kSize, T>;

// Two tiles stay; two and the next two come and go.
template <int kSize, class T>
constexpr size_t query_shared_bytes() {
  return (2 * kOwnRows<kSize, T> + 4 * kTileRows) * kSize * sizeof(T);
}
// Then two numbers of passing queries, and of the next.
template <int kSize, class T>
constexpr size_t key_shared_bytes() {
  constexpr int kPassing = kPassingQueries<kSize, T>;
  return (2 * kOwnRows<kSize, T> + 4 * kPassing) * kSize * sizeof(T) + 4 * kPassing * sizeof(float);
}

// Thread blocks that keep a card busy. One number for all cards: how a sum is split decides its bits.
constexpr int64_t kEnoughBlocks = 512;

// Sums that a group's heads make apart of the gradients of its keys and values: one, or one a head
// where groups and tiles of keys are too few thread blocks.
inline int64_t key_parts(const AttentionGeometry& g, int64_t number_bytes) {
  const int64_t own = 16 * kTensorWarps * gradient_blocks(g.size, number_bytes);
  const int64_t blocks = g.groups * g.rows * ((g.keys + own - 1) / own);
  return blocks < kEnoughBlocks ? g.heads / g.groups : 1;
}

// Scratch of the tiles' kernels: deltas, then a part's dk and dv, in f32, one part behind the other.
inline Bytes tile_scratch(const AttentionGeometry& g, int64_t number_bytes) {
  const int64_t parts = key_parts(g, number_bytes);
  const Bytes sums =
      parts == 1 ? Bytes(0) : Bytes(2 * parts * g.rows * g.keys * g.groups * g.size * 4);
  return Bytes(parts_at(g) * 4) + sums;
}

// The logarithm of what exponentials of a query's scores are divided by, to base 2: from its lse. A
// query that sees no key, or is not there, has no probabilities.
__device__ inline float to_divide_by(float lse) {
  return lse == -INFINITY ? INFINITY : lse * kLog2e;
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
  constexpr int kBlocks = kGradientBlocks<kSize, T>, kOwn = kOwnRows<kSize, T>;
  constexpr int kTile = kTileRows * kSize;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  T* const dy_tile = q_tile + kOwn * kSize;
  T* const kv_tiles = dy_tile + kOwn * kSize;
  const AttentionGeometry& g = call.g;
  const int64_t query = int64_t{gridDim.z - 1 - blockIdx.z} * kOwn;  // the longest work first
  const int64_t head = blockIdx.x, n = blockIdx.y, length = call.length(n);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16 * kBlocks;
  const int64_t last_query = min(g.queries, query + kOwn) - 1;
  const int visible = static_cast<int>(g.visible(last_query, length));
  const int visible_to_all = static_cast<int>(g.visible(query, length));
  const FirstKeys first_keys(call, n, query, last_query + 1);
  const int first_tile = first_keys.least / kTileRows * kTileRows;
  const int visible_to_warp =
      static_cast<int>(g.visible(query + first_row + 16 * kBlocks - 1, length));
  const auto copy_keys = [&](int key) {
    T* const to = kv_tiles + key / kTileRows % 2 * 2 * kTile;
    const int64_t at = g.key_at(n, key, head), left = g.keys - key;
    copy_rows<kSize, kTileRows>(to, call.k + at, g.key_step, left);
    copy_rows<kSize, kTileRows>(to + kTile, call.v + at, g.key_step, left);
  };
  copy_rows<kSize, kOwn>(q_tile, call.q + g.query_at(n, query, head), g.query_step,
                         g.queries - query);
  copy_rows<kSize, kOwn>(dy_tile, d.dy + g.result_at(n, query, head), g.heads * g.size,
                         g.queries - query);
  if (visible > 0) copy_keys(first_tile);
  close_copies();

  const float scale2 = static_cast<float>(g.scale) * kLog2e;
  float lse2[kBlocks][2], delta[kBlocks][2];
  const auto row_of = [&](int b, int r) {
    return min(query + first_row + b * 16 + lane / 4 + 8 * r, g.queries - 1);
  };
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      lse2[b][r] = to_divide_by(d.lse[g.lse_at(n, row_of(b, r), head)]);
      delta[b][r] = d.delta[g.lse_at(n, row_of(b, r), head)];
    }
  }
  const auto queries_at = [&](uint32_t(&left)[4], int b, int column) {
    load_left<kSize>(left, q_tile, first_row + b * 16, column);
  };
  const auto gradients_at = [&](uint32_t(&left)[4], int b, int column) {
    load_left<kSize>(left, dy_tile, first_row + b * 16, column);
  };
  const float kept_scale = kDrop ? static_cast<float>(1 / (1 - g.drop)) : 1.0f;
  float dq[kBlocks][kSize / 8][4] = {};
  for (int key = first_tile; key < visible; key += kTileRows) {
    if (key + kTileRows < visible) copy_keys(key + kTileRows);
    close_copies();
    await_copies<1>();
    __syncthreads();
    if (key >= visible_to_warp) {
      __syncthreads();
      continue;
    }
    const T* const k_tile = kv_tiles + key / kTileRows % 2 * 2 * kTile;
    float p[kBlocks][kTileRows / 8][4] = {}, dp[kBlocks][kTileRows / 8][4] = {};
    add_row_products<kSize, kTileRows>(p, k_tile, queries_at);
    add_row_products<kSize, kTileRows>(dp, k_tile + kTile, gradients_at);
    uint32_t left[kBlocks][kTileRows / kDepth<T>][4];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (key + kTileRows > visible_to_all) {
        hide_unseen(p[b], [&](int r) { return g.visible(row_of(b, r), length) - key; });
      }
      if (key < first_keys.largest) {
        hide_before(p[b], [&](int r) { return call.first(n, row_of(b, r)) - key; });
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        uint32_t bits = 0;  // of two times eight columns
#pragma unroll
        for (int c = 0; c < kTileRows / 8; ++c) {
          if constexpr (kDrop) {
            if (c % 2 == 0) {
              const KeptKeys kept(g, call.rng);
              bits = kept_pairs(kept, g.random_element(n, row_of(b, r), head) + key + c * 8);
            }
          }
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = p[b][c][2 * r + e];
            const float probability = power_of_two(score * scale2 - lse2[b][r]);
            const float factor = !kDrop ? 1 : (bits >> (c % 2 * 2 + e) & 1u) != 0 ? kept_scale : 0;
            score = probability * (factor * dp[b][c][2 * r + e] - delta[b][r]);
          }
        }
      }
      round_to_left<T, kTileRows>(p[b], left[b]);
    }
    add_tile_products<kSize, kTileRows>(dq, left, k_tile);
    __syncthreads();
  }
  await_copies<0>();
  const float scale = static_cast<float>(g.scale);
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const int64_t row = query + first_row + b * 16;
    store_sums<T, kSize>(dq[b], scale, scale, d.dq + g.query_at(n, row, head), g.query_step,
                         g.queries - row);
  }
#endif
}

// Which of the lane's four scores of eight turned columns are kept: bit 2 * r + e is row r, column
// e. Four lanes share the four keys of a draw: each draws for one of the four, and gets from each
// of the others the word of its own key. element(r, e): the random element of the first of those
// keys.
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

// The last query from `query` on that sees a key before `end`, the same in every lane; the row's last
// unless it holds documents. REQUIRES: one does.
template <class T>
__device__ int64_t last_query_that_sees(const AttentionCall<T>& call, int64_t n, int64_t query,
                                        int64_t end) {
  if (call.begins == nullptr) return call.g.queries - 1;
  int last = static_cast<int>(query);
  for (int64_t i = query + threadIdx.x % 32; i < call.g.queries; i += 32) {
    if (call.first(n, i) < end) last = static_cast<int>(i);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    last = max(last, __shfl_xor_sync(~0u, last, offset));
  }
  return last;
}

template <class T, int kSize, bool kDrop>
__global__ void __launch_bounds__(kTensorThreads)
    key_tile_gradients(AttentionCall<T> call, AttentionGradients<T> d) {
#if THIMBLE_TENSOR_TILES
  constexpr int kBlocks = kGradientBlocks<kSize, T>, kOwn = kOwnRows<kSize, T>;
  constexpr int kPassing = kPassingQueries<kSize, T>, kTile = kPassing * kSize;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const k_tile = reinterpret_cast<T*>(shared);
  T* const v_tile = k_tile + kOwn * kSize;
  T* const query_tiles = v_tile + kOwn * kSize;  // q, dy, and the next of both
  float* const row_numbers = reinterpret_cast<float*>(query_tiles + 4 * kTile);  // lse, delta, ...
  const AttentionGeometry& g = call.g;
  const int64_t key = int64_t{blockIdx.z} * kOwn, n = blockIdx.y, length = call.length(n);
  const int64_t parts = gridDim.x / g.groups, shared_by = g.heads / g.groups / parts;
  const int64_t first_head = blockIdx.x * shared_by;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16 * kBlocks;
  const int64_t ahead = g.keys - g.queries;
  const int64_t sees_first = g.causal && key > ahead ? (key - ahead) / kPassing * kPassing : 0;
  const int64_t last_reader = last_query_that_sees(call, n, sees_first, key + kOwn);
  const int tiles = static_cast<int>((last_reader - sees_first) / kPassing + 1);
  const int turns = key < length ? tiles * static_cast<int>(shared_by) : 0;
  const auto head_of = [&](int turn) { return first_head + turn / tiles; };
  const auto query_of = [&](int turn) { return sees_first + turn % tiles * kPassing; };
  const auto copy_queries = [&](int turn) {
    const int64_t head = head_of(turn), query = query_of(turn), left = g.queries - query;
    T* const to = query_tiles + turn % 2 * 2 * kTile;
    copy_rows<kSize, kPassing>(to, call.q + g.query_at(n, query, head), g.query_step, left);
    copy_rows<kSize, kPassing>(to + kTile, d.dy + g.result_at(n, query, head), g.heads * g.size,
                               left);
    float* const numbers = row_numbers + turn % 2 * 2 * kPassing;
    const int row = static_cast<int>(threadIdx.x) % kPassing;
    const bool there = row < left;
    const int64_t at = g.lse_at(n, there ? query + row : query, head);
    if (threadIdx.x < kPassing) {
      numbers[row] = to_divide_by(there ? d.lse[at] : -INFINITY);
    } else if (threadIdx.x < 2 * kPassing) {
      numbers[kPassing + row] = there ? d.delta[at] : 0;
    }
  };
  const int64_t at = g.key_at(n, key, first_head);
  copy_rows<kSize, kOwn>(k_tile, call.k + at, g.key_step, g.keys - key);
  copy_rows<kSize, kOwn>(v_tile, call.v + at, g.key_step, g.keys - key);
  if (turns > 0) copy_queries(0);
  close_copies();

  const float scale2 = static_cast<float>(g.scale) * kLog2e;
  const auto keys_at = [&](uint32_t(&left)[4], int b, int column) {
    load_left<kSize>(left, k_tile, first_row + b * 16, column);
  };
  const auto values_at = [&](uint32_t(&left)[4], int b, int column) {
    load_left<kSize>(left, v_tile, first_row + b * 16, column);
  };
  const float kept_scale = kDrop ? static_cast<float>(1 / (1 - g.drop)) : 1.0f;
  float dk[kBlocks][kSize / 8][4] = {}, dv[kBlocks][kSize / 8][4] = {};
  for (int turn = 0; turn < turns; ++turn) {
    if (turn + 1 < turns) copy_queries(turn + 1);
    close_copies();
    await_copies<1>();
    __syncthreads();
    const int64_t query = query_of(turn), head = head_of(turn);
    if (key + first_row >= g.visible(query + kPassing - 1, length)) {
      __syncthreads();  // the warp's keys are behind all of these
      continue;
    }
    const T* const q_tile = query_tiles + turn % 2 * 2 * kTile;
    const T* const dy_tile = q_tile + kTile;
    const float* const numbers = row_numbers + turn % 2 * 2 * kPassing;
    float p[kBlocks][kPassing / 8][4] = {}, dp[kBlocks][kPassing / 8][4] = {};
    add_row_products<kSize, kPassing>(p, q_tile, keys_at);
    add_row_products<kSize, kPassing>(dp, dy_tile, values_at);
    if (key + kOwn > g.visible(query, length)) {
#pragma unroll
      for (int c = 0; c < kPassing / 8; ++c) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int64_t seen =
              g.visible(query + c * 8 + lane % 4 * 2 + e, length) - key - first_row - lane / 4;
#pragma unroll
          for (int b = 0; b < kBlocks; ++b) {
            if (b * 16 >= seen) p[b][c][e] = -INFINITY;
            if (b * 16 + 8 >= seen) p[b][c][2 + e] = -INFINITY;
          }
        }
      }
    }
    if (call.begins != nullptr) {
#pragma unroll
      for (int c = 0; c < kPassing / 8; ++c) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int64_t reader = min(query + c * 8 + lane % 4 * 2 + e, g.queries - 1);
          const int64_t first = call.first(n, reader) - key - first_row - lane / 4;
#pragma unroll
          for (int b = 0; b < kBlocks; ++b) {
            if (b * 16 < first) p[b][c][e] = -INFINITY;
            if (b * 16 + 8 < first) p[b][c][2 + e] = -INFINITY;
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kPassing / 8; ++c) {
      const int column = c * 8 + lane % 4 * 2;  // and the next
      const float2 lse2 = *reinterpret_cast<const float2*>(numbers + column);
      const float2 delta = *reinterpret_cast<const float2*>(numbers + kPassing + column);
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        uint32_t bits = 0;
        if constexpr (kDrop) {
          bits = kept_turned(KeptKeys(g, call.rng), [&](int r, int e) {
            const int64_t own = min(query + column + e, g.queries - 1);
            return g.random_element(n, own, head) + key + first_row + b * 16 + 8 * r +
                   lane / 16 * 4;
          });
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& probability = p[b][c][i];
          probability = power_of_two(probability * scale2 - (i % 2 == 0 ? lse2.x : lse2.y));
          const float factor = !kDrop ? 1 : (bits >> i & 1u) != 0 ? kept_scale : 0;
          float& gradient = dp[b][c][i];
          gradient = probability * (factor * gradient - (i % 2 == 0 ? delta.x : delta.y));
          probability *= factor;
        }
      }
    }
    uint32_t left[kBlocks][kPassing / kDepth<T>][4];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) round_to_left<T, kPassing>(p[b], left[b]);
    add_tile_products<kSize, kPassing>(dv, left, dy_tile);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) round_to_left<T, kPassing>(dp[b], left[b]);
    add_tile_products<kSize, kPassing>(dk, left, q_tile);
    __syncthreads();
  }
  await_copies<0>();
  const float scale = static_cast<float>(g.scale);
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const int64_t row = key + first_row + b * 16;
    if (parts == 1) {
      const int64_t to = g.key_at(n, row, first_head);
      store_sums<T, kSize>(dk[b], scale, scale, d.dk + to, g.key_step, g.keys - row);
      store_sums<T, kSize>(dv[b], 1, 1, d.dv + to, g.key_step, g.keys - row);
      continue;
    }
    const int64_t width = g.groups * kSize, sums = g.rows * g.keys * width;
    float* const to = d.parts + blockIdx.x % parts * 2 * sums + (n * g.keys + row) * width +
                      blockIdx.x / parts * kSize;
    store_sums<float, kSize>(dk[b], scale, scale, to, width, g.keys - row);
    store_sums<float, kSize>(dv[b], 1, 1, to + sums, width, g.keys - row);
  }
#endif
}

// dk and dv of their parts, summed in the order of heads, two neighbours a thread.
template <class T>
__global__ void __launch_bounds__(kTensorThreads)
    sum_key_parts(AttentionGeometry g, AttentionGradients<T> d, int64_t parts) {
  const int64_t width = g.groups * g.size, sums = g.rows * g.keys * width;
  const int64_t i = (blockIdx.x * int64_t{kTensorThreads} + threadIdx.x) * 2;
  if (i >= sums) return;
  float2 k = {0, 0}, v = {0, 0};
  for (int64_t part = 0; part < parts; ++part) {
    const float* const from = d.parts + part * 2 * sums + i;
    const float2 more_k = *reinterpret_cast<const float2*>(from);
    const float2 more_v = *reinterpret_cast<const float2*>(from + sums);
    k.x += more_k.x, k.y += more_k.y, v.x += more_v.x, v.y += more_v.y;
  }
  const int64_t to = i / width * g.key_step + i % width;
  store_pair(d.dk + to, k.x, k.y);
  store_pair(d.dv + to, v.x, v.y);
}

}  // namespace thimble
