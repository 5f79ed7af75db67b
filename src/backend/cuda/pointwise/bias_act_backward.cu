// bias_act_backward: one pass that writes dx and sums it; the slices' sums are added up by a second
// launch where there is more than one.
#include "backend/cuda/pointwise/activation.cuh"
#include "backend/cuda/reduce/column_sums.cuh"

namespace thimble {
namespace {

template <class T>
struct WriteBias {
  T* dbias;
  bool add;
  template <class Real>
  __device__ void operator()(int column, Real sum) const {
    store(dbias + column, static_cast<float>(sum), add);
  }
};

// kSources is 1 where y is not read. dx may be dy; where it is also equal to it, nothing is written.
template <class T, int kWide, int kSources, class Activation>
__global__ void __launch_bounds__(kColumnThreads, 2)
    map_and_sum(const T* dy, const T* y, T* dx, ColumnTiles tiles, Activation activation,
                float* partial, WriteBias<T> write) {
  const TilePlace<kWide> place(tiles);
  float sum[1][kWide] = {};
  const T* sources[kSources];
  sources[0] = dy;
  if constexpr (kSources == 2) sources[1] = y;
  const bool stays = kSources == 1 && dx == dy;
  const T* const(&from)[kSources] = sources;
  for_each_row<T, kWide, kSources>(
      tiles, place, from, [&](int row, const Vec<T, kWide>(&in)[kSources]) {
        float out[kWide];
#pragma unroll
        for (int e = 0; e < kWide; ++e) {
          out[e] = activation.gradient(widen(in[kSources - 1].at[e]), widen(in[0].at[e]));
          sum[0][e] += out[e];
        }
        if (!stays) {
          store_wide<T, kWide>(dx + int64_t{row} * tiles.columns + place.column, out, false);
        }
      });
  fold_block_columns(tiles, sum, SumFold{}, [&](int, int column, float all) {
    if (partial != nullptr) {
      partial[partial_at(tiles, 1, blockIdx.x, 0, column)] = all;
    } else {
      write(column, all);
    }
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& dy = s.inputs[0];
  if (!on_device(dy.dtype) || dy.elements() == 0) return nullptr;
  const int64_t columns = dy.shape.back(), rows = dy.shape.product(0, dy.shape.rank() - 1);
  const ColumnTiles tiles = sum_tiles(rows, columns, dy.dtype, 1, device);
  const auto launch = [&device, tiles](const KernelArgs& args) {
    float* const partial = tiles.slices > 1 ? reinterpret_cast<float*>(args.workspace) : nullptr;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const dy = args.inputs[0].as<T>();
      const T* const y = args.inputs.size() > 1 ? args.inputs[1].as<T>() : nullptr;
      T* const dx = args.outputs[0].as<T>();
      const WriteBias<T> write{args.outputs[1].as<T>(), args.adds_into(1)};
      with_activation(*args.attrs, [&](auto activation) {
        constexpr int kSources = std::is_same_v<decltype(activation), NoActivation> ? 1 : 2;
        with_wide(tiles.columns, [&](auto wide) {
          map_and_sum<T, wide.value, kSources><<<tiles.grid(), tiles.threads, 0, device.stream>>>(
              dy, y, dx, tiles, activation, partial, write);
        });
      });
      if (partial != nullptr) launch_fold_slices(partial, tiles, SumFold{}, write, device);
    });
    check_launch("bias_act_backward");
  };
  return own_kernel(launch, partial_bytes(tiles, 1));
}

}  // namespace

extern const CudaKernel cuda_bias_act_backward{"bias_act_backward", make};

}  // namespace thimble
