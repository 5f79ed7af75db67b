// Attention on tensor cores, forward. A block takes some queries of one head and streams over the
// keys that they see, a tile at a time. Meanwhile the next tile is on its way to shared memory.
// Scores and probabilities stay in registers.
#pragma once

#include <functional>

#include "backend/cuda/attend/plain_attention.cuh"
#include "backend/cuda/attend/tensor_tiles.cuh"

namespace thimble {

constexpr float kLog2e = 1.4426950408889634f;

// Results that are no normal numbers are 0.
__device__ inline float power_of_two(float x) {
  float y = 0;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// A block for every head, row of the batch, and tile of so many of `count`: tiles last, so that the
// order of their work is that of all heads.
inline dim3 tensor_grid(int64_t heads, int64_t rows, int64_t count, int tile) {
  return {static_cast<unsigned>(heads), static_cast<unsigned>(rows),
          static_cast<unsigned>((count + tile - 1) / tile)};
}

// Blocks of 16 queries that a warp takes: as many as leave their sums in registers.
template <int kSize>
constexpr int kQueryBlocks = kSize <= 64 ? 2 : 1;
template <int kSize>
constexpr int kQueryTile = 16 * kTensorWarps* kQueryBlocks<kSize>;

template <int kSize, class T>
constexpr size_t attend_shared_bytes() {
  return (kQueryTile<kSize> + 4 * kTileRows) * kSize * sizeof(T);
}

// Which of the keys of eight columns are kept, for two of these at a time: neighbouring lanes have
// two of four words each, so that each of them draws for one of the two and gets the rest of the
// other. Bit 2 * t + e of the result: column e of the lane in the t-th. `element` is the random
// element of the first column of the first.
__device__ inline uint32_t kept_pairs(const KeptKeys& kept, int64_t element) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 != 0;
  const PhiloxCounter words = kept.words((element + (odd ? 8 : 0) + lane % 4 / 2 * 4) / 4);
  const uint32_t first = odd ? words[2] : words[0], second = odd ? words[3] : words[1];
  const uint32_t given0 = __shfl_xor_sync(~0u, odd ? words[0] : words[2], 1);
  const uint32_t given1 = __shfl_xor_sync(~0u, odd ? words[1] : words[3], 1);
  const uint32_t own = (kept.keeps(first) ? 1u : 0u) | (kept.keeps(second) ? 2u : 0u);
  const uint32_t given = (kept.keeps(given0) ? 1u : 0u) | (kept.keeps(given1) ? 2u : 0u);
  return odd ? given | own << 2 : own | given << 2;
}

// Scores [16, 8n] of keys that are not seen; seen(r): how many of the tile's are, by the r-th of
// the lane's rows.
template <int kCount, class Seen>
__device__ void hide_unseen(float (&scores)[kCount][4], const Seen& seen) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int count = static_cast<int>(seen(r));
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      if (c * 8 + column >= count) scores[c][2 * r] = -INFINITY;
      if (c * 8 + column + 1 >= count) scores[c][2 * r + 1] = -INFINITY;
    }
  }
}

// The least and the largest first key of some queries: keys before the least are seen by none of
// them, keys from the largest on by all that stand behind. Both are 0 unless a row holds documents.
struct FirstKeys {
  int least, largest;

  // Of queries [query, end) of row n of the batch, the same in every lane.
  template <class T>
  __device__ FirstKeys(const AttentionCall<T>& call, int64_t n, int64_t query, int64_t end)
      : least(0), largest(0) {
    if (call.begins == nullptr) return;
    least = static_cast<int>(query);
    for (int64_t i = query + threadIdx.x % 32; i < end; i += 32) {
      const int first = static_cast<int>(call.first(n, i));
      least = min(least, first);
      largest = max(largest, first);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      least = min(least, __shfl_xor_sync(~0u, least, offset));
      largest = max(largest, __shfl_xor_sync(~0u, largest, offset));
    }
  }
};

// Scores [16, 8n] of keys of other documents; first(r): the first of the tile's keys that the r-th
// of the lane's rows sees.
template <int kCount, class First>
__device__ void hide_before(float (&scores)[kCount][4], const First& first) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int begin = static_cast<int>(first(r));
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      if (c * 8 + column < begin) scores[c][2 * r] = -INFINITY;
      if (c * 8 + column + 1 < begin) scores[c][2 * r + 1] = -INFINITY;
    }
  }
}

// A lane's state of a streamed softmax, for two rows.
struct StreamedRows {
  float largest[2] = {-INFINITY, -INFINITY};  // of scores before scaling
  float sum[2] = {0, 0};                      // of the lane's own columns

  // Takes in a tile of scores, which become probabilities up to a factor; results so far shrink.
  template <int kColumns, int kResults>
  __device__ void take(float (&scores)[kColumns / 8][4], float scale2,
                       float (&results)[kResults / 8][4]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float most = largest[r];
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        most = fmaxf(most, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
      }
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      const float base = most == -INFINITY ? 0 : most * scale2;
      const float fade = power_of_two(largest[r] * scale2 - base);
      largest[r] = most;
      float own = 0;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
        for (int e = 2 * r; e < 2 * r + 2; ++e) {
          scores[n][e] = power_of_two(scores[n][e] * scale2 - base);
          own += scores[n][e];
        }
      }
      sum[r] = sum[r] * fade + own;
#pragma unroll
      for (int n = 0; n < kResults / 8; ++n) {
        results[n][2 * r] *= fade;
        results[n][2 * r + 1] *= fade;
      }
    }
  }
  // The sum over all columns, in every lane of the row.
  __device__ float total(int r) const {
    const float two = sum[r] + __shfl_xor_sync(~0u, sum[r], 1);
    return two + __shfl_xor_sync(~0u, two, 2);
  }
};

template <class T, int kSize, bool kDrop>
__global__ void __launch_bounds__(kTensorThreads)
    attend_tiles(AttentionCall<T> call, T* y, float* lse) {
#if THIMBLE_TENSOR_TILES
  constexpr int kBlocks = kQueryBlocks<kSize>;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  T* const kv_tiles = q_tile + kQueryTile<kSize> * kSize;  // k, v, and the next of both
  const AttentionGeometry& g = call.g;
  // The longest work first.
  const int64_t query = int64_t{gridDim.z - 1 - blockIdx.z} * kQueryTile<kSize>;
  const int64_t head = blockIdx.x, n = blockIdx.y, length = call.length(n);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t last_query = min(g.queries, query + kQueryTile<kSize>) - 1;
  const int visible = static_cast<int>(g.visible(last_query, length));
  const int visible_to_all = static_cast<int>(g.visible(query, length));
  const FirstKeys first_keys(call, n, query, last_query + 1);
  const int first_tile = first_keys.least / kTileRows * kTileRows;
  const auto copy_keys = [&](int key) {
    T* const to = kv_tiles + key / kTileRows % 2 * 2 * kTileRows * kSize;
    const int64_t at = g.key_at(n, key, head), left = g.keys - key;
    copy_rows<kSize, kTileRows>(to, call.k + at, g.key_step, left);
    copy_rows<kSize, kTileRows>(to + kTileRows * kSize, call.v + at, g.key_step, left);
  };
  copy_rows<kSize, kQueryTile<kSize>>(q_tile, call.q + g.query_at(n, query, head), g.query_step,
                                      g.queries - query);
  if (visible > 0) copy_keys(first_tile);
  close_copies();

  const int first_row = warp * 16 * kBlocks;
  const int visible_to_warp =
      static_cast<int>(g.visible(query + first_row + 16 * kBlocks - 1, length));
  const float scale2 = static_cast<float>(g.scale) * kLog2e;
  float results[kBlocks][kSize / 8][4] = {};
  StreamedRows rows[kBlocks];
  const auto queries_at = [&](uint32_t(&left)[4], int block, int column) {
    load_left<kSize>(left, q_tile, first_row + block * 16, column);
  };
  for (int key = first_tile; key < visible; key += kTileRows) {
    if (key + kTileRows < visible) copy_keys(key + kTileRows);
    close_copies();
    await_copies<1>();
    __syncthreads();
    if (key >= visible_to_warp) {
      __syncthreads();
      continue;
    }
    const T* const k_tile = kv_tiles + key / kTileRows % 2 * 2 * kTileRows * kSize;
    const T* const v_tile = k_tile + kTileRows * kSize;
    float scores[kBlocks][kTileRows / 8][4] = {};
    add_row_products<kSize, kTileRows>(scores, k_tile, queries_at);
    uint32_t left[kBlocks][kTileRows / kDepth<T>][4];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t row = query + first_row + b * 16 + lane / 4;  // and the eighth behind it
      if (key + kTileRows > visible_to_all) {
        hide_unseen(scores[b], [&](int r) { return g.visible(row + 8 * r, length) - key; });
      }
      if (key < first_keys.largest) {
        hide_before(scores[b],
                    [&](int r) { return call.first(n, min(row + 8 * r, last_query)) - key; });
      }
      rows[b].template take<kTileRows, kSize>(scores[b], scale2, results[b]);
      if constexpr (kDrop) {
        const KeptKeys kept(g, call.rng);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int64_t own = min(row + 8 * r, g.queries - 1);
          const int64_t element = g.random_element(n, own, head) + key;
#pragma unroll
          for (int c = 0; c < kTileRows / 8; c += 2) {
            const uint32_t bits = kept_pairs(kept, element + c * 8);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              float& p = scores[b][c + e / 2][2 * r + e % 2];
              p = (bits >> e & 1u) != 0 ? p : 0;
            }
          }
        }
      }
      round_to_left<T, kTileRows>(scores[b], left[b]);
    }
    add_tile_products<kSize, kTileRows>(results, left, v_tile);
    __syncthreads();
  }
  await_copies<0>();

  const float kept_scale = kDrop ? static_cast<float>(1 / (1 - g.drop)) : 1.0f;
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const int64_t row = query + first_row + b * 16;
    float share[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float total = rows[b].total(r);
      share[r] = total == 0 ? 0 : kept_scale / total;
      const int64_t own = row + lane / 4 + 8 * r;
      if (lane % 4 == 0 && own < g.queries) {
        lse[g.lse_at(n, own, head)] =
            rows[b].largest[r] * static_cast<float>(g.scale) + logf(total);
      }
    }
    store_sums<T, kSize>(results[b], share[0], share[1], y + g.result_at(n, row, head),
                         g.heads * g.size, g.queries - row);
  }
#endif
}

// Whether tensor cores take it. The largest score is looked for before scaling.
inline bool suits_tensor_cores(const AttentionGeometry& g, DType dtype, const CudaDevice& device) {
  const bool size = g.size == 32 || g.size == 64 || g.size == 128;
  return size && on_device(dtype) && device.architecture >= 80 && g.rows <= 65535 &&
         std::max(g.queries, g.keys) <= 65535 * int64_t{kTileRows} && g.scale > 0;
}

// Calls body(TypeTag<T>{}, size as an integral constant, whether there is dropout, likewise). Of
// f32, T says how it is multiplied (factor.cuh).
template <class Body>
void with_tensor_tiles(const AttentionGeometry& g, DType dtype, bool tf32, const Body& body) {
  const auto with_size = [&](auto tag, auto drop) {
    if (g.size == 32) return body(tag, std::integral_constant<int, 32>{}, drop);
    if (g.size == 64) return body(tag, std::integral_constant<int, 64>{}, drop);
    return body(tag, std::integral_constant<int, 128>{}, drop);
  };
  const auto with_drop = [&](auto tag) {
    if (g.drop > 0) return with_size(tag, std::true_type{});
    return with_size(tag, std::false_type{});
  };
  if (dtype == DType::f16) return with_drop(TypeTag<__half>{});
  if (dtype == DType::bf16) return with_drop(TypeTag<__nv_bfloat16>{});
  if (tf32) return with_drop(TypeTag<RoundedFloat>{});
  return with_drop(TypeTag<float>{});
}

// More than 48 KiB have to be asked for, once per kernel. False: the device has less.
template <class Function>
bool allow_shared(Function* kernel, size_t bytes) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for shared memory");
  if (bytes > static_cast<size_t>(most)) return false;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory of attention");
  return true;
}

// The kernel of a signature with this geometry: plain(args) where tensor cores do not suit, else
// what tensor(TypeTag<T>{}, size, drop) returns, which is as with_tensor_tiles() says; an empty
// function of it: the device has no room for tiles. Each has its scratch. Null: there is none.
template <class Plain, class Tensor>
std::unique_ptr<Kernel> make_attention(const AttentionGeometry& g, DType dtype, CudaDevice& device,
                                       Bytes scratch, Bytes tile_scratch, const Plain& plain,
                                       const Tensor& tensor) {
  const bool empty = g.rows * g.queries * g.keys == 0;
  if (!on_device(dtype) || g.size > kMostPlainChannels || empty) return nullptr;
  std::function<void(const KernelArgs&)> in_tiles;
  if (suits_tensor_cores(g, dtype, device)) {
    with_tensor_tiles(g, dtype, device.tf32,
                      [&](auto tag, auto size, auto drop) { in_tiles = tensor(tag, size, drop); });
  }
  if (in_tiles == nullptr) return own_kernel(plain, scratch);
  std::unique_ptr<Kernel> kernel = own_kernel(std::move(in_tiles), tile_scratch);
  kernel->name = "own, tensor cores";
  return kernel;
}

}  // namespace thimble
