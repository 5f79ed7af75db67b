// Cross entropy of rows of logits, a block per row. The forward pass reads a row once for its
// log-sum-exp and its part of the loss. The backward pass reads it once more, and the gradients of
// its logits take its place:
//
//   row of logits     | f32 0 | 1 | 2 | 3 | 4 | ...            | room up to the pitch
//   its gradients     | 0 | 1 | 2 | 3 | ... in 16 bits         | left over
#pragma once

#include "backend/cuda/vocabulary/left_over.cuh"

namespace thimble {

struct VocabularyRows {
  int classes;
  int pitch;  // from one row of logits to the next, a multiple of a pack
  int64_t ignored;
  float spread, on_target;  // of what is expected: of every class, and of the target on top
};

// One row's part of loss, correct and nll.
struct VocabularyRowSums {
  double of[3];
};

// Log-sum-exp on the way: the largest logit so far and the sum of exponentials beside it. Numbers
// that are not finite show in the sum.
struct Softmax {
  float largest = -INFINITY;
  float sum = 0;

  __device__ static float base(float most) { return most == -INFINITY ? 0 : most; }

  // Takes in numbers of which `most` is the largest.
  template <int kCount>
  __device__ void add(const float (&x)[kCount], float most) {
    if (most > largest) {
      sum *= __expf(largest - most);
      largest = most;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += __expf(x[i] - base(largest));
  }
  __device__ static Softmax both(const Softmax& a, const Softmax& b) {
    const float most = fmaxf(a.largest, b.largest);
    return {most, a.sum * __expf(a.largest - base(most)) + b.sum * __expf(b.largest - base(most))};
  }
  __device__ float log() const { return largest + logf(sum); }
};

// Results of one thread for its part of a row, and their combination.
struct RowShare {
  Softmax softmax;
  float all = 0;         // the sum of logits, where it counts
  int beats_target = 0;  // whether a logit goes before the target's

  __device__ static RowShare both(const RowShare& a, const RowShare& b) {
    return {Softmax::both(a.softmax, b.softmax), a.all + b.all, a.beats_target | b.beats_target};
  }
};

// The same in every thread of the block.
template <int kThreads>
__device__ RowShare of_block(RowShare own) {
  __shared__ RowShare of_warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    const RowShare other = {{__shfl_xor_sync(~0u, own.softmax.largest, offset),
                             __shfl_xor_sync(~0u, own.softmax.sum, offset)},
                            __shfl_xor_sync(~0u, own.all, offset),
                            __shfl_xor_sync(~0u, own.beats_target, offset)};
    own = RowShare::both(own, other);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  own = of_warps[0];
  for (int w = 1; w < kThreads / 32; ++w) own = RowShare::both(own, of_warps[w]);
  return own;
}

// Neighbouring logits that a thread holds at a time: kAtOnce packs, kThreads packs apart.
template <int kThreads, int kAtOnce>
struct LogitTile {
  static constexpr int kPack = Pack<float>::kCount, kLogits = kThreads * kAtOnce * kPack;
  float at[kAtOnce * kPack];

  __device__ static int column(int first, int i) {
    return first + (i / kPack * kThreads + static_cast<int>(threadIdx.x)) * kPack + i % kPack;
  }
  // Of a row, from column `first` on; `instead` where it ends.
  __device__ void load(const float* row, int first, int classes, float instead) {
#pragma unroll
    for (int i = 0; i < kAtOnce * kPack; i += kPack) {
      const int c = column(first, i);
      Pack<float> pack{{instead, instead, instead, instead}};
      if (c < classes) pack = *reinterpret_cast<const Pack<float>*>(row + c);
#pragma unroll
      for (int e = 0; e < kPack; ++e) at[i + e] = c + e < classes ? pack.at[e] : instead;
    }
  }
  // Rounded, to a row of gradients. Bytes behind the row's end may be written.
  template <class T>
  __device__ void store(T* row, int first, int classes) const {
    struct alignas(kPack * sizeof(T)) Four {
      T at[kPack];
    };
#pragma unroll
    for (int i = 0; i < kAtOnce * kPack; i += kPack) {
      const int c = column(first, i);
      if (c >= classes) continue;
      Four pack;
#pragma unroll
      for (int e = 0; e < kPack; ++e) pack.at[e] = narrow<T>(at[i + e]);
      *reinterpret_cast<Four*>(row + c) = pack;
    }
  }
};

// A block per row, of which the logits of the classes that are left over are made here, from its
// row of h. `lse` and `sums` may be null. T is the type of h and, where these are written, of
// gradients.
template <class T, bool kGradients, int kThreads>
__global__ void __launch_bounds__(kThreads)
    measure_rows(VocabularyRows v, LeftOver<T> left_over, const T* h, float* logits,
                 const int32_t* targets, float* lse, VocabularyRowSums* sums,
                 const float* normalizer, const float* upstream) {
  using Tile = LogitTile<kThreads, 4>;
  const int64_t r = blockIdx.x;
  float* const row = logits + r * v.pitch;
  add_left_over<T, kThreads>(left_over, h + r * left_over.width, row);
  const int32_t target = targets[r];
  const bool counts = target != v.ignored && target >= 0 && target < v.classes;
  const float logit = counts ? row[target] : 0;
  Tile tile;
  RowShare own;
  for (int first = 0; first < v.classes; first += Tile::kLogits) {
    tile.load(row, first, v.classes, -INFINITY);
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < std::ssize(tile.at); ++i) {
      const float x = tile.at[i];
      const int c = Tile::column(first, i);
      most = fmaxf(most, x);
      own.beats_target |= x > logit || (x == logit && c < target) ? 1 : 0;
      if (v.spread != 0 && c < v.classes) own.all += x;
    }
    own.softmax.add(tile.at, most);
  }
  own = of_block<kThreads>(own);
  const float log_sum = own.softmax.log();
  if (threadIdx.x == 0) {
    if (lse != nullptr) lse[r] = log_sum;
    if (sums != nullptr) {
      const double expected = static_cast<double>(v.spread) * static_cast<double>(own.all) +
                              static_cast<double>(v.on_target) * static_cast<double>(logit);
      sums[r] = {};
      if (counts) {
        sums[r].of[0] = static_cast<double>(log_sum) - expected;
        sums[r].of[1] = own.beats_target != 0 ? 0 : 1;
        sums[r].of[2] = static_cast<double>(log_sum) - static_cast<double>(logit);
      }
    }
  }
  if constexpr (kGradients) {
    const float scale = counts ? *normalizer * *upstream : 0;
    T* const to = reinterpret_cast<T*>(row);
    for (int first = 0; first < v.classes; first += Tile::kLogits) {
      tile.load(row, first, v.classes, 0);
      // Gradients of a tile lie where logits do that this one or those before it have read.
      if constexpr (sizeof(T) < sizeof(float)) __syncthreads();
#pragma unroll
      for (int i = 0; i < std::ssize(tile.at); ++i) {
        const bool hit = Tile::column(first, i) == target;
        tile.at[i] = scale * (__expf(tile.at[i] - log_sum) - v.spread - (hit ? v.on_target : 0));
      }
      tile.store(to, first, v.classes);
    }
  }
}

// Calls body(threads of a block as an integral constant) with as many as suit rows of `classes`.
template <class Body>
void with_row_threads(int64_t classes, const Body& body) {
  if (classes <= 1024) return body(std::integral_constant<int, 64>{});
  if (classes <= 16384) return body(std::integral_constant<int, 256>{});
  return body(std::integral_constant<int, 1024>{});
}

}  // namespace thimble
