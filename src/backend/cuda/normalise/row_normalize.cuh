// Normalisation of rows that a warp holds in registers: x is read once, and of its gradient x and
// dy are. Rows are centred (layer_norm) or not (rms_norm). Gradients of scales and shifts are
// summed in registers over the rows of a warp, in shared memory over the warps of a block, then
// over the blocks, in order.
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"

namespace thimble {

constexpr int kNormWarps = 8;
constexpr int kNormThreads = 32 * kNormWarps;
constexpr int kMostNormPacks = 8;

__device__ inline float sum_of_warp(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

// A row spread over a warp: pack p of a lane is pack 32 * p + lane of the row.
template <class T, int kPacks>
struct WarpRow {
  static constexpr int kEach = Pack<T>::kCount;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int columns;

  __device__ explicit WarpRow(int count) : columns(count) {}
  __device__ int column(int p) const { return (32 * p + lane) * kEach; }
  __device__ bool has(int p) const { return column(p) < columns; }

  __device__ void load(const T* row, float (&x)[kPacks][kEach]) const {
    Pack<T> packs[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (has(p)) packs[p] = *reinterpret_cast<const Pack<T>*>(row + column(p));
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) x[p][e] = has(p) ? widen(packs[p].at[e]) : 0;
    }
  }
  // Calls body(p, of_channels [kEach]) for every pack of the lane, with the numbers of `channels`
  // that belong to its columns.
  template <class Body>
  __device__ void for_each_pack(const float* channels, const Body& body) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!has(p)) continue;
      float of_channels[kEach];
#pragma unroll
      for (int e = 0; e < kEach; e += 4) {
        const float4 four = *reinterpret_cast<const float4*>(channels + column(p) + e);
        of_channels[e] = four.x, of_channels[e + 1] = four.y;
        of_channels[e + 2] = four.z, of_channels[e + 3] = four.w;
      }
      body(p, of_channels);
    }
  }
  // Calls body(p, e, column) for every element of the lane.
  template <class Body>
  __device__ void for_each(const Body& body) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!has(p)) continue;
#pragma unroll
      for (int e = 0; e < kEach; ++e) body(p, e, column(p) + e);
    }
  }
  // row = map(p, e, column), or added to what is there.
  template <class Map>
  __device__ void store(T* row, bool add, const Map& map) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!has(p)) continue;
      Pack<T>* const to = reinterpret_cast<Pack<T>*>(row + column(p));
      Pack<T> result{};
      if (add) result = *to;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        thimble::store(&result.at[e], map(p, e, column(p) + e), add);
      }
      *to = result;
    }
  }
};

// mean and beta are null for rows that are not centred. y may be x.
template <class T, int kPacks, bool kCentred>
__global__ void __launch_bounds__(kNormThreads)
    normalize_rows(const T* x, T* y, const float* gamma, const float* beta, float* mean,
                   float* rstd, int64_t rows, int columns, float epsilon) {
  const WarpRow<T, kPacks> own(columns);
  float in[kPacks][WarpRow<T, kPacks>::kEach];
  for (int64_t row = blockIdx.x * int64_t{kNormWarps} + threadIdx.x / 32; row < rows;
       row += gridDim.x * int64_t{kNormWarps}) {
    own.load(x + row * columns, in);
    float center = 0, sum = 0;
    if constexpr (kCentred) {
      own.for_each([&](int p, int e, int) { sum += in[p][e]; });
      center = sum_of_warp(sum) / static_cast<float>(columns);
      sum = 0;
    }
    own.for_each([&](int p, int e, int) { sum += (in[p][e] - center) * (in[p][e] - center); });
    const float inverse = rsqrtf(sum_of_warp(sum) / static_cast<float>(columns) + epsilon);
    own.for_each_pack(gamma, [&](int p, const auto& scale) {
#pragma unroll
      for (int e = 0; e < own.kEach; ++e) in[p][e] = (in[p][e] - center) * inverse * scale[e];
    });
    if constexpr (kCentred) {
      own.for_each_pack(beta, [&](int p, const auto& shift) {
#pragma unroll
        for (int e = 0; e < own.kEach; ++e) in[p][e] += shift[e];
      });
    }
    own.store(y + row * columns, false, [&](int p, int e, int) { return in[p][e]; });
    if (own.lane == 0) {
      if constexpr (kCentred) mean[row] = center;
      rstd[row] = inverse;
    }
  }
}

// partial [blocks, 2, columns]: the block's sums for gamma and, of centred rows, beta. dx may be
// dy.
template <class T, int kPacks, bool kCentred>
__global__ void __launch_bounds__(kNormThreads)
    row_norm_gradients(const T* x, const T* dy, const float* gamma, const float* mean,
                       const float* rstd, T* dx, float* partial, int64_t rows, int columns,
                       bool add) {
  constexpr int kEach = WarpRow<T, kPacks>::kEach;
  const WarpRow<T, kPacks> own(columns);
  float in[kPacks][kEach], gradient[kPacks][kEach];
  float dgamma[kPacks][kEach] = {}, dbeta[kCentred ? kPacks : 1][kEach] = {};
  const float share = 1 / static_cast<float>(columns);
  for (int64_t row = blockIdx.x * int64_t{kNormWarps} + threadIdx.x / 32; row < rows;
       row += gridDim.x * int64_t{kNormWarps}) {
    own.load(x + row * columns, in);
    own.load(dy + row * columns, gradient);
    const float center = kCentred ? mean[row] : 0, inverse = rstd[row];
    float sum = 0, sum_normalized = 0;
    own.for_each_pack(gamma, [&](int p, const auto& scale) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        in[p][e] = (in[p][e] - center) * inverse;
        dgamma[p][e] += gradient[p][e] * in[p][e];
        if constexpr (kCentred) dbeta[p][e] += gradient[p][e];
        gradient[p][e] *= scale[e];
        sum += gradient[p][e];
        sum_normalized += gradient[p][e] * in[p][e];
      }
    });
    const float mean_d = kCentred ? sum_of_warp(sum) * share : 0;
    const float mean_d_normalized = sum_of_warp(sum_normalized) * share;
    own.store(dx + row * columns, add, [&](int p, int e, int) {
      return inverse * (gradient[p][e] - mean_d - in[p][e] * mean_d_normalized);
    });
  }
  // Packs by packs, the sums of all warps are added up in their order. Elements of a pack lie
  // apart, so that the lanes of a warp write to neighbours.
  __shared__ float of_warps[kNormWarps][32 * kEach];
  const int wanted = kCentred ? 2 * columns : columns, warp = static_cast<int>(threadIdx.x) / 32;
  float* const to = partial + int64_t{blockIdx.x} * wanted;
  const auto fold = [&](const float(&sums)[kEach], int first_column, float* at) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) of_warps[warp][32 * e + own.lane] = sums[e];
    __syncthreads();
    const int c = static_cast<int>(threadIdx.x);
    if (c < 32 * kEach && first_column + c < columns) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kNormWarps; ++w) sum += of_warps[w][c % kEach * 32 + c / kEach];
      at[first_column + c] = sum;
    }
    __syncthreads();
  };
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    fold(dgamma[p], 32 * kEach * p, to);
    if constexpr (kCentred) fold(dbeta[p], 32 * kEach * p, to + columns);
  }
}

constexpr int kFoldColumns = 32, kFoldGroups = 32;

// Adds up what the blocks found; columns [0, count) go to `first`, those behind to `second`. A
// group of threads takes every 32nd block, then the groups are added up in order.
__global__ inline void __launch_bounds__(kFoldColumns* kFoldGroups)
    fold_norm_sums(const float* partial, int blocks, int wanted, int count, float* first,
                   float* second, bool add_first, bool add_second) {
  __shared__ double sums[kFoldGroups][kFoldColumns];
  const int lane = static_cast<int>(threadIdx.x) % kFoldColumns;
  const int group = static_cast<int>(threadIdx.x) / kFoldColumns;
  const int c = static_cast<int>(blockIdx.x) * kFoldColumns + lane;
  double sum = 0;
  if (c < wanted) {
#pragma unroll 4
    for (int b = group; b < blocks; b += kFoldGroups) {
      sum += static_cast<double>(partial[int64_t{b} * wanted + c]);
    }
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || c >= wanted) return;
  for (int g = 1; g < kFoldGroups; ++g) sum += sums[g][lane];
  if (c < count) {
    store(first + c, static_cast<float>(sum), add_first);
  } else {
    store(second + c - count, static_cast<float>(sum), add_second);
  }
}

// Whether a warp can hold a row of x.
inline bool fits_a_warp(const TensorType& x) {
  if (!on_device(x.dtype) || x.elements() == 0) return false;
  const int64_t each = 16 / size_of(x.dtype), columns = x.shape.back();
  return columns % each == 0 && columns <= 32 * each * kMostNormPacks;
}

// Calls body(TypeTag<T>{}, packs of a lane as an integral constant). REQUIRES: fits_a_warp().
template <class Body>
void with_norm_packs(const TensorType& x, const Body& body) {
  with_device_type(x.dtype, [&](auto tag) {
    const int64_t packs = (x.shape.back() * size_of(x.dtype) + 511) / 512;
    if (packs <= 1) return body(tag, std::integral_constant<int, 1>{});
    if (packs <= 3) return body(tag, std::integral_constant<int, 3>{});
    if (packs <= 4) return body(tag, std::integral_constant<int, 4>{});
    return body(tag, std::integral_constant<int, kMostNormPacks>{});
  });
}

// Blocks for `rows` rows, `each` on a multiprocessor at most.
inline unsigned norm_blocks(int64_t rows, int each, const CudaDevice& device) {
  return static_cast<unsigned>(std::clamp<int64_t>((rows + kNormWarps - 1) / kNormWarps, 1,
                                                   int64_t{device.multiprocessors} * each));
}

// (x, gamma [, beta]) -> (y [, mean], rstd), of rows that fit.
template <bool kCentred>
std::unique_ptr<Kernel> make_normalize_rows(CudaDevice& device) {
  return own_kernel([&device](const KernelArgs& args) {
    const TensorType& x = args.inputs[0].type;
    const int64_t columns = x.shape.back(), rows = x.elements() / columns;
    const float epsilon = static_cast<float>(args.attrs->real("epsilon", 1e-5));
    with_norm_packs(x, [&](auto tag, auto packs) {
      using T = typename decltype(tag)::type;
      normalize_rows<T, packs.value, kCentred>
          <<<norm_blocks(rows, 8, device), kNormThreads, 0, device.stream>>>(
              args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.inputs[1].as<float>(),
              kCentred ? args.inputs[2].as<float>() : nullptr,
              kCentred ? args.outputs[1].as<float>() : nullptr, args.outputs.back().as<float>(),
              rows, static_cast<int>(columns), epsilon);
    });
    check_launch("a normalisation of rows");
  });
}

// (x [, mean], rstd, gamma, dy) -> (dx, dgamma [, dbeta]), of rows that fit.
template <bool kCentred>
std::unique_ptr<Kernel> make_row_norm_gradients(const Signature& s, CudaDevice& device) {
  const int columns = static_cast<int>(s.inputs[0].shape.back());
  const int64_t rows = s.inputs[0].elements() / columns;
  const unsigned blocks = norm_blocks(rows, 2, device);
  const int wanted = kCentred ? 2 * columns : columns;
  const auto launch = [&device, columns, rows, blocks, wanted](const KernelArgs& args) {
    const size_t statistics = kCentred ? 2 : 1;
    float* const partial = reinterpret_cast<float*>(args.workspace);
    with_norm_packs(args.inputs[0].type, [&](auto tag, auto packs) {
      using T = typename decltype(tag)::type;
      row_norm_gradients<T, packs.value, kCentred><<<blocks, kNormThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs.back().as<T>(),
          args.inputs[statistics + 1].as<float>(), kCentred ? args.inputs[1].as<float>() : nullptr,
          args.inputs[statistics].as<float>(), args.outputs[0].as<T>(), partial, rows, columns,
          args.adds_into(0));
    });
    fold_norm_sums<<<static_cast<unsigned>((wanted + kFoldColumns - 1) / kFoldColumns),
                     kFoldColumns * kFoldGroups, 0, device.stream>>>(
        partial, static_cast<int>(blocks), wanted, columns, args.outputs[1].as<float>(),
        kCentred ? args.outputs[2].as<float>() : nullptr, args.adds_into(1),
        kCentred && args.adds_into(2));
    check_launch("the gradient of a normalisation of rows");
  };
  return own_kernel(launch, Bytes(int64_t{blocks} * wanted * static_cast<int64_t>(sizeof(float))));
}

}  // namespace thimble
