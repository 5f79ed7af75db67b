// embed and take_rows: rows of a table, scaled.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"
#include "backend/cuda/shape/rows.cuh"
#include "ops/embed/row_lookup.h"

namespace thimble {

// kWide neighbours of a row to a thread; `wides` of them make a row.
template <class T, int kWide>
__global__ void __launch_bounds__(kBlockThreads)
    look_up(const T* table, const int32_t* numbers, T* y, int64_t count, int64_t wides,
            int64_t rows, int64_t pad, float scale) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const int64_t at = quotient(i, wides), column = i - at * wides;
    const int64_t number = numbers[at];
    Vec<T, kWide> row{};
    if (number >= 0 && number < rows && number != pad) {
      row = reinterpret_cast<const Vec<T, kWide>*>(table)[number * wides + column];
#pragma unroll
      for (int e = 0; e < kWide; ++e) row.at[e] = narrow<T>(widen(row.at[e]) * scale);
    }
    reinterpret_cast<Vec<T, kWide>*>(y)[i] = row;
  }
}

inline std::unique_ptr<Kernel> make_row_lookup(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  const RowLookup lookup(s.inputs[0].shape[0], s.inputs[0].shape[1], s.attrs);
  return own_kernel([&device, lookup](const KernelArgs& args) {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(lookup.width, [&](auto wide) {
        const int64_t count = args.outputs[0].elements() / wide.value;
        look_up<T, wide.value><<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<int32_t>(), args.outputs[0].as<T>(), count,
            lookup.width / wide.value, lookup.rows, lookup.pad, static_cast<float>(lookup.scale));
      });
    });
    check_launch("a lookup of rows");
  });
}

}  // namespace thimble
