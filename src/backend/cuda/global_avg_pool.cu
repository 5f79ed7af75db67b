// global_avg_pool: the columns of every image summed by one block per strip.
#include "backend/cuda/column_sums.cuh"

namespace thimble {
namespace {

template <class T, int kWide>
__global__ void __launch_bounds__(128) mean_of_images(const T* x, T* y, ColumnTiles tiles) {
  const TilePlace<kWide> place(tiles);
  float sum[1][kWide] = {};
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[1]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[0][e] += widen(in[0].at[e]);
  });
  fold_block_columns(tiles, sum, Add{}, [&](int, int column, float all) {
    y[int64_t{blockIdx.x} * tiles.columns + column] =
        narrow<T>(all / static_cast<float>(tiles.rows));
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype)) return nullptr;
  ColumnTiles tiles = column_tiles(x.shape[1] * x.shape[2], x.shape[3], x.dtype);
  tiles.threads = 128;
  return own_kernel([&device, tiles](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(tiles.columns, [&](auto wide) {
        mean_of_images<T, wide.value>
            <<<tiles.grid(args.inputs[0].type.shape[0]), tiles.threads, 0, device.stream>>>(
                args.inputs[0].as<T>(), args.outputs[0].as<T>(), tiles);
      });
    });
    check_launch("global_avg_pool");
  });
}

}  // namespace

extern const CudaKernel cuda_global_avg_pool;
const CudaKernel cuda_global_avg_pool{"global_avg_pool", make};

}  // namespace thimble
