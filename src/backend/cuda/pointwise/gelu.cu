// gelu: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return with_gate<DeviceGates>(gelu_of("gelu", s.attrs), [&](auto gate) {
    return make_elementwise<1>(s, device, GateValue<decltype(gate)>{gate});
  });
}

}  // namespace

extern const CudaKernel cuda_gelu{"gelu", make};

}  // namespace thimble
