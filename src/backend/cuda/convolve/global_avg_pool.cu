// global_avg_pool: the columns of every image summed by one block per strip.
#include "backend/cuda/convolve/image_columns.cuh"
#include "backend/cuda/reduce/column_sums.cuh"

namespace thimble {
namespace {

template <class T, int kWide>
__global__ void __launch_bounds__(kImageThreads)
    mean_of_images(const T* x, T* y, ColumnTiles tiles) {
  const TilePlace<kWide> place(tiles);
  float sum[1][kWide] = {};
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[1]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[0][e] += widen(in[0].at[e]);
  });
  fold_block_columns(tiles, sum, SumFold{}, [&](int, int column, float all) {
    y[int64_t{blockIdx.x} * tiles.columns + column] =
        narrow<T>(all / static_cast<float>(tiles.rows));
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_over_images(s.inputs[0], [&device](auto tag, auto wide, const ColumnTiles& tiles,
                                                 dim3 grid, const KernelArgs& args) {
    using T = typename decltype(tag)::type;
    mean_of_images<T, wide.value><<<grid, kImageThreads, 0, device.stream>>>(
        args.inputs[0].as<T>(), args.outputs[0].as<T>(), tiles);
  });
}

}  // namespace

extern const CudaKernel cuda_global_avg_pool{"global_avg_pool", make};

}  // namespace thimble
