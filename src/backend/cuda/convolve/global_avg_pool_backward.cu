// global_avg_pool_backward: every thread spreads its channels' share over rows of an image.
#include "backend/cuda/convolve/image_columns.cuh"

namespace thimble {
namespace {

template <class T, int kWide>
__global__ void __launch_bounds__(kImageThreads)
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
  return make_over_images(s.outputs[0], [&device](auto tag, auto wide, const ColumnTiles& tiles,
                                                  dim3 grid, const KernelArgs& args) {
    using T = typename decltype(tag)::type;
    spread_over_images<T, wide.value><<<grid, kImageThreads, 0, device.stream>>>(
        args.inputs[0].as<T>(), args.outputs[0].as<T>(), tiles, args.adds_into(0));
  });
}

}  // namespace

extern const CudaKernel cuda_global_avg_pool_backward{"global_avg_pool_backward", make};

}  // namespace thimble
