// silu: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, GateValue<SiluGate>{});
}

}  // namespace

extern const CudaKernel cuda_silu;
const CudaKernel cuda_silu{"silu", make};

}  // namespace thimble
