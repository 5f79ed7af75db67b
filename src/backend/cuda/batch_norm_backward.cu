// batch_norm_backward: a pass that sums dy and dy * (x - mean) under the recomputed mask of the
// relu, and a pass that writes dx. By clusters both are one launch, and x and dy are read once;
// otherwise the first leaves means in scratch.
#include "backend/cuda/batch_norm_channel.cuh"
#include "backend/cuda/cluster_columns.cuh"
#include "backend/cuda/column_sums.cuh"

namespace thimble {
namespace {

// Means over the rows, by channel: of dy, and of dy times the normalised x. Zeros where statistics
// are constants.
struct GradientMeans {
  float *d, *d_normalized;
};

struct ParameterGradients {
  float *gamma, *beta;
  bool add_gamma, add_beta;
  double share;  // of a row in the statistics; 0 where they are constants

  // From the sum of dy, and that of dy times the normalised x.
  __device__ void write(int column, double sum_d, double sum_normalized) const {
    store(beta + column, static_cast<float>(sum_d), add_beta);
    store(gamma + column, static_cast<float>(sum_normalized), add_gamma);
  }
};

// dy where the relu let x through.
template <bool kRelu>
__device__ float passed(float x, float dy, const ChannelMap& channel) {
  return kRelu && channel.pre_activation(x) <= 0 ? 0 : dy;
}

template <class T, int kWide, bool kRelu, int kSources>
__device__ void add_gradients(const Vec<T, kWide> (&in)[kSources],
                              const ChannelMap (&channel)[kWide], float (&sum)[2][kWide]) {
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    const float x = widen(in[0].at[e]);
    const float d = passed<kRelu>(x, widen(in[1].at[e]), channel[e]);
    sum[0][e] += d;
    sum[1][e] += d * (x - channel[e].mean);
  }
}

// What goes through the statistics, as a function of x.
struct ThroughStatistics {
  float constant, slope;
};

__device__ ThroughStatistics through_statistics(const ChannelMap& channel, float rstd, float mean_d,
                                                float mean_normalized) {
  return {channel.scale * mean_d, channel.scale * rstd * mean_normalized};
}

template <bool kRelu>
__device__ float gradient(float x, float dy, const ChannelMap& channel,
                          const ThroughStatistics& through) {
  const float d = passed<kRelu>(x, dy, channel);
  return channel.scale * d - (through.constant + (x - channel.mean) * through.slope);
}

template <class T, bool kRelu, bool kAdd>
__global__ void __launch_bounds__(kClusterThreads, 2)
    cluster_gradients(const T* x, const T* dy, NormParameters parameters, ClusterTiles tiles,
                      ParameterGradients out, T* dx) {
  constexpr int kStrip = ClusterShape<T>::kStrip;
  const ClusterPlace<T> place(tiles);
  const T* const sources[2] = {x, dy};
  const ClusterRows<T, 2> rows(tiles, place, sources);
  ChannelMap channel[kClusterWide];
#pragma unroll
  for (int e = 0; e < kClusterWide; ++e) channel[e] = parameters.channel(place.column + e);
  float sum[2][kClusterWide] = {};
  rows.for_each([&](int, const Vec<T, kClusterWide>(&in)[2]) {
    add_gradients<T, kClusterWide, kRelu>(in, channel, sum);
  });
  sum_cluster<T>(sum, [&](const double(&total)[2][kStrip]) {
    const int strip = static_cast<int>(blockIdx.y) * kStrip, own = static_cast<int>(threadIdx.x);
    if (blockIdx.x == 0 && own < kStrip) {
      const double rstd = static_cast<double>(parameters.rstd(strip + own));
      out.write(strip + own, total[0][own], total[1][own] * rstd);
    }
    ThroughStatistics through[kClusterWide];
#pragma unroll
    for (int e = 0; e < kClusterWide; ++e) {
      const int at = place.column + e - strip;
      const float rstd = parameters.rstd(place.column + e);
      through[e] = through_statistics(
          channel[e], rstd, static_cast<float>(total[0][at] * out.share),
          static_cast<float>(total[1][at] * static_cast<double>(rstd) * out.share));
    }
    rows.for_each([&](int row, const Vec<T, kClusterWide>(&in)[2]) {
      float result[kClusterWide];
#pragma unroll
      for (int e = 0; e < kClusterWide; ++e) {
        result[e] =
            gradient<kRelu>(widen(in[0].at[e]), widen(in[1].at[e]), channel[e], through[e]);
      }
      store_wide<T, kClusterWide>(dx + int64_t{row} * tiles.columns + place.column, result, kAdd);
    });
  });
}

template <class T, int kWide, bool kRelu>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  float* partial, int stream, GradientMeans means, ParameterGradients out) {
  const TilePlace<kWide> place(tiles);
  ChannelMap channel[kWide] = {};
  if (place.inside) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) channel[e] = parameters.channel(place.column + e);
  }
  float sum[2][kWide] = {};
  const T* const sources[2] = {x, dy};
  for_each_row<T, kWide, 2>(tiles, place, sources, [&](int, const Vec<T, kWide>(&in)[2]) {
    add_gradients<T, kWide, kRelu>(in, channel, sum);
  });
  sum_columns(tiles, sum, partial, stream, [&](int column, const double(&sums)[2]) {
    const double normalized = sums[1] * static_cast<double>(parameters.rstd(column));
    means.d[column] = static_cast<float>(sums[0] * out.share);
    means.d_normalized[column] = static_cast<float>(normalized * out.share);
    out.write(column, sums[0], normalized);
  });
}

constexpr int kMapThreads = 256, kMapBlocks = 4;  // of a multiprocessor

template <class T, int kWide, bool kRelu, bool kAdd>
__global__ void __launch_bounds__(kMapThreads, kMapBlocks)
    map_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  GradientMeans means, T* dx) {
  const TilePlace<kWide> place(tiles);
  if (!place.inside) return;
  ChannelMap channel[kWide];
  ThroughStatistics through[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    const int c = place.column + e;
    channel[e] = parameters.channel(c);
    through[e] =
        through_statistics(channel[e], parameters.rstd(c), means.d[c], means.d_normalized[c]);
  }
  constexpr int kSources = kAdd ? 3 : 2;
  const T* sources[kSources];
  sources[0] = x;
  sources[1] = dy;
  if constexpr (kAdd) sources[2] = dx;
  const auto body = [&](int row, const Vec<T, kWide>(&in)[kSources]) {
    float result[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      result[e] = gradient<kRelu>(widen(in[0].at[e]), widen(in[1].at[e]), channel[e], through[e]);
      if constexpr (kAdd) result[e] += widen(in[2].at[e]);
    }
    store_wide<T, kWide>(dx + int64_t{row} * tiles.columns + place.column, result, false);
  };
  for_each_row<T, kWide, kSources>(tiles, place, sources, body);
}

// Calls body(bool as an integral constant).
template <class Body>
void with_flag(bool flag, const Body& body) {
  if (flag) {
    body(std::true_type{});
  } else {
    body(std::false_type{});
  }
}

ParameterGradients parameter_gradients(const KernelArgs& args, double share) {
  return {args.outputs[1].as<float>(), args.outputs[2].as<float>(), args.adds_into(1),
          args.adds_into(2), share};
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const bool relu = s.attrs.text("act", "none") == "relu";
  const double share = s.attrs.integer("training", 1) != 0 ? 1 / static_cast<double>(rows) : 0;
  if (clusters_fit(rows, columns, x.dtype, device)) {
    const auto launch = [&device, tiles = cluster_tiles(rows, columns), relu,
                         share](const KernelArgs& args) {
      with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        with_flag(relu, [&](auto with_relu) {
          with_flag(args.adds_into(0), [&](auto add) {
            launch_clusters(cluster_gradients<T, with_relu.value, add.value>, tiles,
                            ClusterShape<T>::kStrip, device, "batch_norm_backward",
                            args.inputs[0].as<T>(), args.inputs[5].as<T>(), NormParameters(args),
                            tiles, parameter_gradients(args, share), args.outputs[0].as<T>());
          });
        });
      });
    };
    return own_kernel(launch);
  }
  const ColumnTiles summed = sum_tiles(rows, columns, x.dtype, 2, device);
  if (!has_tickets(summed)) return nullptr;
  ColumnTiles mapped = column_tiles(rows, columns, x.dtype);
  mapped.threads = kMapThreads;
  slice_rows(mapped, int64_t{device.multiprocessors} * kMapBlocks / mapped.strips, kRowsAtOnce);
  const Bytes of_partial = align_up(partial_bytes(summed, 2));
  const auto launch = [&device, summed, mapped, relu, share, of_partial](const KernelArgs& args) {
    const NormParameters parameters(args);
    float* const partial = reinterpret_cast<float*>(args.workspace);
    float* const first_mean = reinterpret_cast<float*>(args.workspace + of_partial.count);
    const GradientMeans means = {first_mean, first_mean + summed.columns};
    const ParameterGradients out = parameter_gradients(args, share);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      const T* const dy = args.inputs[5].as<T>();
      with_wide(summed.columns, [&](auto wide) {
        with_flag(relu, [&](auto with_relu) {
          sum_gradients<T, wide.value, with_relu.value>
              <<<summed.grid(), summed.threads, 0, device.stream>>>(
                  x, dy, parameters, summed, partial, device.stream_number, means, out);
          with_flag(args.adds_into(0), [&](auto add) {
            map_gradients<T, wide.value, with_relu.value, add.value>
                <<<mapped.grid(), mapped.threads, 0, device.stream>>>(
                    x, dy, parameters, mapped, means, args.outputs[0].as<T>());
          });
        });
      });
    });
    check_launch("batch_norm_backward");
  };
  return own_kernel(launch, of_partial + Bytes(2 * columns * int64_t{sizeof(float)}));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_backward;
const CudaKernel cuda_batch_norm_backward{"batch_norm_backward", make};

}  // namespace thimble
