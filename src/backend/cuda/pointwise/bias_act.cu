// bias_act: one pass, biases in registers.
#include "backend/cuda/pointwise/bias.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype)) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles tiles = map_tiles(rows, columns, x.dtype, device);
  return own_kernel([&device, tiles](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_activation(*args.attrs, [&](auto activation) {
        const AddBias<T, decltype(activation)> map{args.inputs[1].as<T>(), activation};
        launch_map_columns(args.inputs[0].as<T>(), args.outputs[0].as<T>(), tiles, map, device);
      });
    });
    check_launch("bias_act");
  });
}

}  // namespace

extern const CudaKernel cuda_bias_act{"bias_act", make};

}  // namespace thimble
