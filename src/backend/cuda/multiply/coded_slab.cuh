// Slabs of a frozen matrix (backend/coded_slab.h), decoded on the device to what cuBLASLt multiplies.
#pragma once

#include "backend/coded_slab.h"
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/unfused.cuh"

namespace thimble {

// NF4's tables, as an argument of a kernel.
struct Nf4Numbers {
  float at[16 + 256];
};
inline Nf4Numbers nf4_numbers() {
  Nf4Numbers numbers;
  std::ranges::copy(kNf4Levels, numbers.at);
  std::ranges::copy(nf4_scale_map(), numbers.at + kNf4Levels.size());
  return numbers;
}
struct NoNumbers {};

// Tables are read by every thread at places of its own: from shared memory. REQUIRES: all threads of
// the block.
template <class Numbers>
__device__ Nf4Tables shared_tables(const Numbers& tables) {
  if constexpr (std::is_same_v<Numbers, Nf4Numbers>) {
    __shared__ Nf4Numbers own;
    for (int i = static_cast<int>(threadIdx.x); i < std::ssize(own.at); i += kBlockThreads) {
      own.at[i] = tables.at[i];
    }
    __syncthreads();
    return {own.at, own.at + kNf4Levels.size()};
  } else {
    return {};
  }
}

template <int kWide, class Matrix, class Numbers, class To>
__global__ void __launch_bounds__(kBlockThreads)
    decode_slab(const __grid_constant__ Numbers tables, Matrix matrix, int64_t matrix_columns,
                SlabPlace place, To* to) {
  const Nf4Tables at = shared_tables(tables);
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t groups = place.rows * (place.columns / kWide);
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < groups; i += threads) {
    decode_group<kWide>(matrix, matrix_columns, place, at, i, to);
  }
}

// Calls body(how its numbers are decoded, the tables for that). `values` are those of the matrix, in
// their order.
template <class Body>
void with_slab_of(const CodedMatrix& matrix, std::span<const TensorRef> values, const Body& body) {
  const void* const first = values[0].data;
  switch (matrix.format) {
    case CodedFormat::nf4:
      return body(
          Nf4Slab<Unfused>{static_cast<const uint8_t*>(first), values[1].as<const uint8_t>(),
                           values[2].as<const float>(), values[3].as<const float>()},
          nf4_numbers());
    case CodedFormat::int8:
      return body(Int8Slab<Unfused>{static_cast<const int8_t*>(first), values[1].as<const float>()},
                  NoNumbers{});
    case CodedFormat::f16:
      return body(StoredSlab<__half>{static_cast<const __half*>(first)}, NoNumbers{});
    case CodedFormat::bf16:
      return body(StoredSlab<__nv_bfloat16>{static_cast<const __nv_bfloat16*>(first)}, NoNumbers{});
  }
}

// The numbers of a place of a matrix, one row behind the other, in `dtype`.
inline void decode_on_device(const CodedMatrix& matrix, std::span<const TensorRef> values,
                             const SlabPlace& place, DType dtype, void* to,
                             const CudaDevice& device) {
  with_slab_of(matrix, values, [&](const auto& slab, const auto& tables) {
    with_device_type(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto decode = [&](auto wide) {
        const int64_t groups = place.rows * place.columns / wide.value;
        decode_slab<wide.value><<<blocks_for(groups, device), kBlockThreads, 0, device.stream>>>(
            tables, slab, matrix.columns, place, static_cast<T*>(to));
      };
      if (slab_group(matrix.columns, place) == 8) return decode(std::integral_constant<int, 8>{});
      decode(std::integral_constant<int, 1>{});
    });
  });
  check_launch("decoding a frozen matrix");
}

}  // namespace thimble
