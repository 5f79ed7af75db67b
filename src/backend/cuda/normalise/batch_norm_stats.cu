// batch_norm_stats: one pass and one launch, by clusters where they suit. Sums are of deviations
// from the channel's first number, so that little cancels whatever the mean.
#include "backend/cuda/reduce/cluster_columns.cuh"
#include "backend/cuda/reduce/column_sums.cuh"

namespace thimble {
namespace {

// Of deviations from `first`.
struct Moments {
  double sum, of_squares;
};

struct Statistics {
  float *mean, *var;

  __device__ void write(int column, float first, Moments moments, int rows) const {
    const double count = static_cast<double>(rows), shift = moments.sum / count;
    const double squares = moments.of_squares - moments.sum * shift;
    mean[column] = static_cast<float>(static_cast<double>(first) + shift);
    var[column] = static_cast<float>((squares < 0 ? 0 : squares) / count);  // keeps NaN
  }
};

template <class T, int kWide>
__device__ void add_moments(const Vec<T, kWide>& in, const float (&first)[kWide],
                            float (&sum)[2][kWide]) {
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    const float deviation = widen(in.at[e]) - first[e];
    sum[0][e] += deviation;
    sum[1][e] += deviation * deviation;
  }
}

template <class T>
__global__ void __launch_bounds__(kClusterThreads, 2)
    cluster_moments(const T* x, ClusterTiles tiles, Statistics out) {
  const ClusterPlace<T> place(tiles);
  const T* const sources[1] = {x};
  const ClusterRows<T, 1> rows(tiles, place, sources);
  float first[kClusterWide], sum[2][kClusterWide] = {};
#pragma unroll
  for (int e = 0; e < kClusterWide; ++e) first[e] = widen(x[place.column + e]);
  rows.for_each([&](int, const Vec<T, kClusterWide>(&in)[1]) { add_moments(in[0], first, sum); });
  constexpr int kStrip = ClusterShape<T>::kStrip;
  sum_cluster<T>(sum, [&](const double(&total)[2][kStrip]) {
    const int own = static_cast<int>(threadIdx.x);
    if (blockIdx.x != 0 || own >= kStrip) return;
    const int column = static_cast<int>(blockIdx.y) * kStrip + own;
    out.write(column, widen(x[column]), {total[0][own], total[1][own]}, tiles.rows);
  });
}

template <class T, int kWide>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_moments(const T* x, ColumnTiles tiles, float* partial, int stream, Statistics out) {
  const TilePlace<kWide> place(tiles);
  float first[kWide] = {}, sum[2][kWide] = {};
  if (place.inside) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) first[e] = widen(x[place.column + e]);
  }
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[1]) {
    add_moments(in[0], first, sum);
  });
  sum_columns(tiles, sum, partial, stream, [&](int column, const double(&sums)[2]) {
    out.write(column, widen(x[column]), {sums[0], sums[1]}, tiles.rows);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  if (clusters_fit(rows, columns, x.dtype, device)) {
    return own_kernel([&device, tiles = cluster_tiles(rows, columns)](const KernelArgs& args) {
      const Statistics out = {args.outputs[0].as<float>(), args.outputs[1].as<float>()};
      with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        launch_clusters(cluster_moments<T>, tiles, ClusterShape<T>::kStrip, device,
                        "batch_norm_stats", args.inputs[0].as<T>(), tiles, out);
      });
    });
  }
  const ColumnTiles tiles = with_tickets(sum_tiles(rows, columns, x.dtype, 2, device));
  const auto launch = [&device, tiles](const KernelArgs& args) {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(tiles.columns, [&](auto wide) {
        sum_moments<T, wide.value><<<tiles.grid(), tiles.threads, 0, device.stream>>>(
            args.inputs[0].as<T>(), tiles, reinterpret_cast<float*>(args.workspace),
            device.stream_number,
            Statistics{args.outputs[0].as<float>(), args.outputs[1].as<float>()});
      });
    });
    check_launch("batch_norm_stats");
  };
  return own_kernel(launch, partial_bytes(tiles, 2));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_stats{"batch_norm_stats", make};

}  // namespace thimble
