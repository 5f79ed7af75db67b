// silu_backward: one pass over the argument and the gradient.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<2>(s, device, GateGradient<SiluGate>{});
}

}  // namespace

extern const CudaKernel cuda_silu_backward;
const CudaKernel cuda_silu_backward{"silu_backward", make};

}  // namespace thimble
