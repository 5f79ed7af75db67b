// global_avg_pool_backward: every thread spreads its channels' share over rows of an image.
#include "backend/cuda/columns.cuh"

namespace thimble {
namespace {

template <class T, int kWide>
__global__ void __launch_bounds__(128)
    spread_over_images(const T* dy, T* dx, ColumnTiles tiles, bool add) {
  const TilePlace<kWide> place(tiles);
  if (!place.inside) return;
  const int64_t image = blockIdx.x / static_cast<unsigned>(tiles.slices);
  const Vec<T, kWide> in =
      *reinterpret_cast<const Vec<T, kWide>*>(dy + image * tiles.columns + place.column);
  float share[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) share[e] = widen(in.at[e]) / static_cast<float>(tiles.rows);
#pragma unroll 4
  for (int row = place.begin + place.y; row < place.end; row += place.down) {
    store_wide<T, kWide>(dx + int64_t{row} * tiles.columns + place.column, share, add);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& dx = s.outputs[0];
  if (!on_device(dx.dtype)) return nullptr;
  ColumnTiles tiles = column_tiles(dx.shape[1] * dx.shape[2], dx.shape[3], dx.dtype);
  tiles.threads = 128;
  return own_kernel([&device, tiles](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(tiles.columns, [&](auto wide) {
        spread_over_images<T, wide.value>
            <<<tiles.grid(args.outputs[0].type.shape[0]), tiles.threads, 0, device.stream>>>(
                args.inputs[0].as<T>(), args.outputs[0].as<T>(), tiles, args.adds_into(0));
      });
    });
    check_launch("global_avg_pool_backward");
  });
}

}  // namespace

extern const CudaKernel cuda_global_avg_pool_backward;
const CudaKernel cuda_global_avg_pool_backward{"global_avg_pool_backward", make};

}  // namespace thimble
