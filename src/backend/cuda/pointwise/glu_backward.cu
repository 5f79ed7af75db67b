// glu_backward: a thread per pair of results. dx may be x.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

template <class T, class G>
__global__ void __launch_bounds__(kBlockThreads)
    half_gradients(const T* x, const T* dy, T* dx, int64_t count, int columns, bool add, G gate) {
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < count; i += gridDim.x * int64_t{blockDim.x}) {
    const int64_t at = i + i / columns * columns;
    const float a = widen(x[at]), b = widen(x[at + columns]), d = widen(dy[i]);
    store(dx + at, d * gate.value(b), add);
    store(dx + at + columns, d * a * gate.slope(b), add);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const Gate gate = gate_of("glu_backward", s.attrs);
  return own_kernel([&device, gate](const KernelArgs& args) {
    const int64_t count = args.inputs[1].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_gate<DeviceGates>(gate, [&](auto g) {
        half_gradients<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(), count,
            static_cast<int>(args.inputs[1].type.shape.back()), args.adds_into(0), g);
      });
    });
    check_launch("the gradient of glu");
  });
}

}  // namespace

extern const CudaKernel cuda_glu_backward{"glu_backward", make};

}  // namespace thimble
