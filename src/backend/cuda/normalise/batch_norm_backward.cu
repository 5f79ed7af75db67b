// batch_norm_backward: a pass that sums dy and dy * (x - mean) under the recomputed mask of the
// relu, and a pass that writes dx. Blocks of the second pass add up the partial sums of their
// channels themselves, all in the same order, while their first rows are being loaded. Blocks of
// the first slice write dgamma and dbeta.
#include "backend/cuda/normalise/batch_norm_channel.cuh"
#include "backend/cuda/reduce/column_sums.cuh"

namespace thimble {
namespace {

// dy where the relu let x through.
template <bool kRelu>
__device__ float passed(float x, float dy, const ChannelMap& channel) {
  return kRelu && channel.pre_activation(x) <= 0 ? 0 : dy;
}

template <class T, int kWide, bool kRelu>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  float* partial) {
  __shared__ ChannelMap strip[32 * kWide];
  const TilePlace<kWide> place(tiles);
  const T* const sources[2] = {x, dy};
  RowReader<T, kWide, 2> rows(tiles, place, sources);
  load_channels<ChannelMap, kWide>(tiles, strip, [&](int c) { return parameters.channel(c); });
  ChannelMap channel[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) channel[e] = strip[place.x * kWide + e];
  float sum[2][kWide] = {};
  rows.for_each([&](int, const Vec<T, kWide>(&in)[2]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float value = widen(in[0].at[e]);
      const float d = passed<kRelu>(value, widen(in[1].at[e]), channel[e]);
      sum[0][e] += d;
      sum[1][e] += d * (value - channel[e].mean);
    }
  });
  fold_block_columns(tiles, sum, SumFold{}, [&](int k, int column, float all) {
    partial[partial_at(tiles, 2, blockIdx.x, k, column)] = all;
  });
}

struct ParameterGradients {
  float *gamma, *beta;
  bool add_gamma, add_beta;
  double share;  // of a row in the statistics; 0 where they are constants
};

constexpr int kMapThreads = 256, kMapBlocks = 4;  // of a multiprocessor

// A channel, and what goes through its statistics as a function of x.
struct GradientMap {
  ChannelMap channel;
  float constant, slope;

  template <bool kRelu>
  __device__ float gradient(float x, float dy) const {
    const float d = passed<kRelu>(x, dy, channel);
    return channel.scale * d - (constant + (x - channel.mean) * slope);
  }
};

// The strip's, from the partial sums: sum k of column `own` is added up by every 2 * width-th
// thread.
template <int kWide>
__device__ void add_up(const ColumnTiles& tiles, const NormParameters& parameters,
                       const float* partial, int slices, const ParameterGradients& out,
                       GradientMap (&strip)[32 * kWide]) {
  __shared__ double parts[kMapThreads];
  const int width = tiles.across * kWide, thread = static_cast<int>(threadIdx.x);
  const int own = thread % width, k = thread / width % 2, part = thread / (2 * width);
  const int parts_each = kMapThreads / (2 * width);
  const int column = static_cast<int>(blockIdx.y) * width + own;
  double sum = 0;
  if (column < tiles.columns) {
#pragma unroll 8
    for (int s = part; s < slices; s += parts_each) {
      sum += static_cast<double>(partial[partial_at(tiles, 2, s, k, column)]);
    }
  }
  parts[thread] = sum;
  __syncthreads();
  if (thread < width && column < tiles.columns) {
    double sum_d = 0, sum_normalized = 0;
    for (int p = 0; p < parts_each; ++p) {
      sum_d += parts[thread + 2 * p * width];
      sum_normalized += parts[thread + (2 * p + 1) * width];
    }
    const float rstd = parameters.rstd(column);
    sum_normalized *= static_cast<double>(rstd);
    const ChannelMap channel = parameters.channel(column);
    strip[own] = {channel, channel.scale * static_cast<float>(sum_d * out.share),
                  channel.scale * rstd * static_cast<float>(sum_normalized * out.share)};
    if (blockIdx.x == 0) {
      store(out.beta + column, static_cast<float>(sum_d), out.add_beta);
      store(out.gamma + column, static_cast<float>(sum_normalized), out.add_gamma);
    }
  }
  __syncthreads();
}

template <class T, int kWide, bool kRelu, bool kAdd>
__global__ void __launch_bounds__(kMapThreads, kMapBlocks)
    map_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  const float* partial, int slices, ParameterGradients out, T* dx) {
  __shared__ GradientMap strip[32 * kWide];
  constexpr int kSources = kAdd ? 3 : 2;
  const TilePlace<kWide> place(tiles);
  const T* sources[kSources];
  sources[0] = x;
  sources[1] = dy;
  if constexpr (kAdd) sources[2] = dx;
  RowReader<T, kWide, kSources> rows(tiles, place, sources);
  add_up<kWide>(tiles, parameters, partial, slices, out, strip);
  GradientMap map[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) map[e] = strip[place.x * kWide + e];
  rows.for_each([&](int row, const Vec<T, kWide>(&in)[kSources]) {
    float result[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      result[e] = map[e].template gradient<kRelu>(widen(in[0].at[e]), widen(in[1].at[e]));
      if constexpr (kAdd) result[e] += widen(in[2].at[e]);
    }
    store_wide<T, kWide>(dx + int64_t{row} * tiles.columns + place.column, result, false);
  });
}

// Few slices, which every block of the second pass reads; strips the narrower, down to 32 bytes.
ColumnTiles tiles_of_sums(int64_t rows, int64_t columns, DType dtype, const CudaDevice& device) {
  constexpr int64_t kMostSlices = 64;
  ColumnTiles tiles = column_tiles(rows, columns, dtype);
  const int narrowest = tiles.across * wide_of(columns) * size_of(dtype) > 32
                            ? 32 / static_cast<int>(wide_of(columns) * size_of(dtype))
                            : tiles.across;
  while (tiles.across > narrowest && tiles.strips * kMostSlices < device.multiprocessors) {
    tiles.across /= 2;
    tiles.strips *= 2;
  }
  const int64_t busy = std::max<int64_t>(1, int64_t{device.multiprocessors} * 2 / tiles.strips);
  slice_rows(tiles, std::min(kMostSlices, busy), kRowsAtOnce);
  return tiles;
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
  const ColumnTiles summed = tiles_of_sums(rows, columns, x.dtype, device);
  ColumnTiles mapped = column_tiles(rows, columns, x.dtype);
  mapped.threads = kMapThreads;
  slice_rows(mapped, int64_t{device.multiprocessors} * kMapBlocks / mapped.strips, kRowsAtOnce);
  const bool relu = s.attrs.text("act", "none") == "relu";
  const double share = s.attrs.integer("training", 1) != 0 ? 1 / static_cast<double>(rows) : 0;
  const auto launch = [&device, summed, mapped, relu, share](const KernelArgs& args) {
    const NormParameters parameters(args);
    float* const partial = reinterpret_cast<float*>(args.workspace);
    const ParameterGradients out = {args.outputs[1].as<float>(), args.outputs[2].as<float>(),
                                    args.adds_into(1), args.adds_into(2), share};
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      const T* const dy = args.inputs[5].as<T>();
      with_wide(summed.columns, [&](auto wide) {
        with_flag(relu, [&](auto with_relu) {
          sum_gradients<T, wide.value, with_relu.value>
              <<<summed.grid(), summed.threads, 0, device.stream>>>(x, dy, parameters, summed,
                                                                    partial);
          with_flag(args.adds_into(0), [&](auto add) {
            map_gradients<T, wide.value, with_relu.value, add.value>
                <<<mapped.grid(), mapped.threads, 0, device.stream>>>(x, dy, parameters, mapped,
                                                                      partial, summed.slices, out,
                                                                      args.outputs[0].as<T>());
          });
        });
      });
    });
    check_launch("batch_norm_backward");
  };
  return own_kernel(launch, Bytes(int64_t{summed.slices} * columns * 2 * int64_t{sizeof(float)}));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_backward{"batch_norm_backward", make};

}  // namespace thimble
