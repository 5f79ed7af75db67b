// batch_norm_backward: a pass that sums dy and dy * (x - mean) under the recomputed mask of the
// relu and leaves their means in scratch, and a pass that writes dx.
#include "backend/cuda/batch_norm_channel.cuh"
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
};

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
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float value = widen(in[0].at[e]);
      const bool off = kRelu && channel[e].pre_activation(value) <= 0;
      const float d = off ? 0 : widen(in[1].at[e]);
      sum[0][e] += d;
      sum[1][e] += d * (value - channel[e].mean);
    }
  });
  sum_columns(tiles, sum, partial, stream, [&](int column, const double(&sums)[2]) {
    const double normalized = sums[1] * static_cast<double>(parameters.rstd(column));
    means.d[column] = static_cast<float>(sums[0] * out.share);
    means.d_normalized[column] = static_cast<float>(normalized * out.share);
    store(out.beta + column, static_cast<float>(sums[0]), out.add_beta);
    store(out.gamma + column, static_cast<float>(normalized), out.add_gamma);
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
  float constant[kWide], slope[kWide];  // what goes through the statistics, as a function of x
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    const int c = place.column + e;
    channel[e] = parameters.channel(c);
    constant[e] = channel[e].scale * means.d[c];
    slope[e] = channel[e].scale * parameters.rstd(c) * means.d_normalized[c];
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
      const float value = widen(in[0].at[e]);
      const bool off = kRelu && channel[e].pre_activation(value) <= 0;
      const float d = off ? 0 : widen(in[1].at[e]);
      result[e] = channel[e].scale * d - (constant[e] + (value - channel[e].mean) * slope[e]);
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

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles summed = sum_tiles(rows, columns, x.dtype, 2, device);
  if (!has_tickets(summed)) return nullptr;
  ColumnTiles mapped = column_tiles(rows, columns, x.dtype);
  mapped.threads = kMapThreads;
  slice_rows(mapped, int64_t{device.multiprocessors} * kMapBlocks / mapped.strips, kRowsAtOnce);
  const bool relu = s.attrs.text("act", "none") == "relu";
  const double share = s.attrs.integer("training", 1) != 0 ? 1 / static_cast<double>(rows) : 0;
  const Bytes of_partial = align_up(partial_bytes(summed, 2));
  const auto launch = [&device, summed, mapped, relu, share, of_partial](const KernelArgs& args) {
    const NormParameters parameters(args);
    float* const partial = reinterpret_cast<float*>(args.workspace);
    float* const first_mean = reinterpret_cast<float*>(args.workspace + of_partial.count);
    const GradientMeans means = {first_mean, first_mean + summed.columns};
    const ParameterGradients out = {args.outputs[1].as<float>(), args.outputs[2].as<float>(),
                                    args.adds_into(1), args.adds_into(2), share};
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
