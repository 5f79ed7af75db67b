// One fold per column of a tensor, or of each of several tensors of one shape.
#pragma once

#include "backend/cuda/reduce/column_sums.cuh"

namespace thimble {

// Partial results of a first launch.
struct WritePartial {
  float* partial;
  __device__ void operator()(int64_t at, double value) const {
    partial[at] = static_cast<float>(value);
  }
};

template <class T, int kWide, class Fold, class Write>
__global__ void __launch_bounds__(kColumnThreads, 2)
    fold_columns(const T* x, ColumnTiles tiles, Fold fold, Write write) {
  const TilePlace<kWide> place(tiles);
  float sum[1][kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) sum[0][e] = Fold::kNothing;
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[1]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[0][e] = fold(sum[0][e], widen(in[0].at[e]));
  });
  fold_block_columns(tiles, sum, fold, [&](int, int column, float all) {
    write(int64_t{blockIdx.x} * tiles.columns + column, static_cast<double>(all));
  });
}

// Calls write(index, double) for x [tensors, rows, columns] -> [tensors, columns]. REQUIRES: one
// tensor where tiles have slices, and partial_bytes() at `partial` then.
template <class T, class Fold, class Write>
void launch_fold_columns(const T* x, const ColumnTiles& tiles, int64_t tensors, const Fold& fold,
                         const Write& write, float* partial, const CudaDevice& device) {
  const dim3 grid = tiles.grid(tensors);
  with_wide(tiles.columns, [&](auto wide) {
    if (tiles.slices == 1) {
      fold_columns<T, wide.value><<<grid, tiles.threads, 0, device.stream>>>(x, tiles, fold, write);
    } else {
      fold_columns<T, wide.value>
          <<<grid, tiles.threads, 0, device.stream>>>(x, tiles, fold, WritePartial{partial});
    }
  });
  if (tiles.slices > 1) launch_fold_slices(partial, tiles, fold, write, device);
}

}  // namespace thimble
