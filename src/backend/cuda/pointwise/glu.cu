// glu: a thread per result.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

template <class T, class G>
__global__ void __launch_bounds__(kBlockThreads)
    gate_halves(const T* x, T* y, int64_t count, int columns, G gate) {
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < count; i += gridDim.x * int64_t{blockDim.x}) {
    const T* const a = x + i + i / columns * columns;
    y[i] = narrow<T>(widen(*a) * gate.value(widen(a[columns])));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const Gate gate = gate_of("glu", s.attrs);
  return own_kernel([&device, gate](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_gate<DeviceGates>(gate, [&](auto g) {
        gate_halves<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.outputs[0].as<T>(), count,
            static_cast<int>(args.outputs[0].type.shape.back()), g);
      });
    });
    check_launch("glu");
  });
}

}  // namespace

extern const CudaKernel cuda_glu{"glu", make};

}  // namespace thimble
