// batch_norm_backward: a pass that sums dy and dy * (x - mean) under the recomputed mask of the
// relu, and a pass that writes dx. Blocks of the second pass add up the partial sums of their
// channels themselves, all in the same order; those of the first slice write dgamma and dbeta.
#include "backend/cuda/batch_norm_channel.cuh"
#include "backend/cuda/column_sums.cuh"

namespace thimble {
namespace {

template <class T, int kWide, bool kRelu>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  float* partial) {
  const TilePlace<kWide> place(tiles);
  NormChannel channel[kWide] = {};
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
  fold_block_columns(tiles, sum, Add{}, [&](int k, int column, float all) {
    partial[partial_at(tiles, 2, blockIdx.x, k, column)] = all;
  });
}

template <class T>
struct Gradients {
  T* dx;
  float *dgamma, *dbeta;
  bool add_dx, add_dgamma, add_dbeta;
  double share;  // of a row in the statistics; 0 where they are constants
};

template <class T, int kWide, bool kRelu>
__global__ void __launch_bounds__(kColumnThreads, 2)
    map_gradients(const T* x, const T* dy, NormParameters parameters, ColumnTiles tiles,
                  ColumnTiles summed, const float* partial, Gradients<T> out) {
  // Sum k of the strip's column `own` is added up by every 2 * strip-th thread.
  __shared__ double parts[kColumnThreads];
  __shared__ float mean_d[32 * kWide], mean_d_normalized[32 * kWide];
  const int strip = tiles.across * kWide, thread = static_cast<int>(threadIdx.x);
  const int own = thread % strip, k = thread / strip % 2, part = thread / (2 * strip);
  const int parts_each = static_cast<int>(blockDim.x) / (2 * strip);
  const int column = static_cast<int>(blockIdx.y) * strip + own;
  double sum = 0;
  if (column < tiles.columns) {
#pragma unroll 4
    for (int s = part; s < summed.slices; s += parts_each) {
      sum += static_cast<double>(partial[partial_at(summed, 2, s, k, column)]);
    }
  }
  parts[thread] = sum;
  __syncthreads();
  if (part == 0 && column < tiles.columns) {
    for (int p = 1; p < parts_each; ++p) sum += parts[thread + p * 2 * strip];
    if (k == 0) {
      mean_d[own] = static_cast<float>(sum * out.share);
      if (blockIdx.x == 0) store(out.dbeta + column, static_cast<float>(sum), out.add_dbeta);
    } else {
      sum *= static_cast<double>(parameters.rstd(column));
      mean_d_normalized[own] = static_cast<float>(sum * out.share);
      if (blockIdx.x == 0) store(out.dgamma + column, static_cast<float>(sum), out.add_dgamma);
    }
  }
  __syncthreads();

  const TilePlace<kWide> place(tiles);
  if (!place.inside) return;
  NormChannel channel[kWide];
  float constant[kWide], slope[kWide];  // what goes through the statistics, as a function of x
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    const int c = place.column + e;
    channel[e] = parameters.channel(c);
    constant[e] = channel[e].scale * mean_d[place.x * kWide + e];
    slope[e] = channel[e].scale * parameters.rstd(c) * mean_d_normalized[place.x * kWide + e];
  }
  const T* const sources[2] = {x, dy};
  for_each_row<T, kWide, 2>(tiles, place, sources, [&](int row, const Vec<T, kWide>(&in)[2]) {
    float result[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float value = widen(in[0].at[e]);
      const bool off = kRelu && channel[e].pre_activation(value) <= 0;
      const float d = off ? 0 : widen(in[1].at[e]);
      result[e] = channel[e].scale * d - (constant[e] + (value - channel[e].mean) * slope[e]);
    }
    store_wide<T, kWide>(out.dx + int64_t{row} * tiles.columns + place.column, result, out.add_dx);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles summed = sum_tiles(rows, columns, x.dtype, 2, device);
  ColumnTiles mapped = column_tiles(rows, columns, x.dtype);
  slice_rows(mapped, (int64_t{device.multiprocessors} * 2 + mapped.strips - 1) / mapped.strips,
             kRowsAtOnce);
  const bool relu = s.attrs.text("act", "none") == "relu";
  const double share = s.attrs.integer("training", 1) != 0 ? 1 / static_cast<double>(rows) : 0;
  const auto launch = [&device, summed, mapped, relu, share](const KernelArgs& args) {
    const NormParameters parameters(args);
    float* const partial = reinterpret_cast<float*>(args.workspace);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      const T* const dy = args.inputs[5].as<T>();
      const Gradients<T> out = {args.outputs[0].as<T>(),     args.outputs[1].as<float>(),
                                args.outputs[2].as<float>(), args.adds_into(0),
                                args.adds_into(1),           args.adds_into(2),
                                share};
      const auto both = [&](auto wide, auto with_relu) {
        sum_gradients<T, wide.value, with_relu.value>
            <<<summed.grid(), summed.threads, 0, device.stream>>>(x, dy, parameters, summed,
                                                                  partial);
        map_gradients<T, wide.value, with_relu.value>
            <<<mapped.grid(), mapped.threads, 0, device.stream>>>(x, dy, parameters, mapped, summed,
                                                                  partial, out);
      };
      with_wide(summed.columns, [&](auto wide) {
        if (relu) {
          both(wide, std::true_type{});
        } else {
          both(wide, std::false_type{});
        }
      });
    });
    check_launch("batch_norm_backward");
  };
  return own_kernel(launch, Bytes(int64_t{summed.slices} * columns * 2 * int64_t{sizeof(float)}));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_backward;
const CudaKernel cuda_batch_norm_backward{"batch_norm_backward", make};

}  // namespace thimble
