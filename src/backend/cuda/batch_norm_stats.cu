// batch_norm_stats: one pass and one launch. Sums are of deviations from the channel's first number,
// so that nothing cancels whatever the mean.
#include "backend/cuda/column_sums.cuh"

namespace thimble {
namespace {

template <class T, int kWide>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_moments(const T* x, ColumnTiles tiles, float* partial, int stream, float* mean,
                float* var) {
  const TilePlace<kWide> place(tiles);
  float first[kWide] = {}, sum[2][kWide] = {};
  if (place.inside) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) first[e] = widen(x[place.column + e]);
  }
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[1]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float deviation = widen(in[0].at[e]) - first[e];
      sum[0][e] += deviation;
      sum[1][e] += deviation * deviation;
    }
  });
  sum_columns(tiles, sum, partial, stream, [&](int column, const double(&sums)[2]) {
    const double rows = static_cast<double>(tiles.rows), shift = sums[0] / rows;
    const double squares = sums[1] - sums[0] * shift;
    mean[column] = static_cast<float>(static_cast<double>(widen(x[column])) + shift);
    var[column] = static_cast<float>((squares < 0 ? 0 : squares) / rows);  // keeps NaN
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles tiles = sum_tiles(rows, columns, x.dtype, 2, device);
  if (!has_tickets(tiles)) return nullptr;
  const auto launch = [&device, tiles](const KernelArgs& args) {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(tiles.columns, [&](auto wide) {
        sum_moments<T, wide.value><<<tiles.grid(), tiles.threads, 0, device.stream>>>(
            args.inputs[0].as<T>(), tiles, reinterpret_cast<float*>(args.workspace),
            device.stream_number, args.outputs[0].as<float>(), args.outputs[1].as<float>());
      });
    });
    check_launch("batch_norm_stats");
  };
  return own_kernel(launch, partial_bytes(tiles, 2));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_stats;
const CudaKernel cuda_batch_norm_stats{"batch_norm_stats", make};

}  // namespace thimble
