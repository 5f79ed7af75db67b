// gelu_backward: one pass over the argument and the gradient.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return with_gate<DeviceGates>(gelu_of("gelu_backward", s.attrs), [&](auto gate) {
    return make_elementwise<2>(s, device, GateGradient<decltype(gate)>{gate});
  });
}

}  // namespace

extern const CudaKernel cuda_gelu_backward{"gelu_backward", make};

}  // namespace thimble
