// batch_norm: one pass, channels in registers.
#include "backend/cuda/normalise/batch_norm_channel.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {
namespace {

template <bool kRelu>
struct Normalize {
  using Channel = ChannelMap;
  NormParameters parameters;

  __device__ ChannelMap channel(int c) const { return parameters.channel(c); }
  __device__ float operator()(float x, const ChannelMap& channel) const {
    const float z = channel.pre_activation(x);
    return kRelu && z <= 0 ? 0 : z;
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype)) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles tiles = map_tiles(rows, columns, x.dtype, device);
  const bool relu = s.attrs.text("act", "none") == "relu";
  return own_kernel([&device, tiles, relu](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    const NormParameters parameters(args);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      T* const y = args.outputs[0].as<T>();
      if (relu) {
        launch_map_columns(x, y, tiles, Normalize<true>{parameters}, device);
      } else {
        launch_map_columns(x, y, tiles, Normalize<false>{parameters}, device);
      }
    });
    check_launch("batch_norm");
  });
}

}  // namespace

extern const CudaKernel cuda_batch_norm{"batch_norm", make};

}  // namespace thimble
