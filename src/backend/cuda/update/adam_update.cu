// adam_update: one pass; see adam_step.cuh.
#include "backend/cuda/update/adam_step.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_update(s, device, 2, AdamElement<false>(s.attrs));
}

}  // namespace

extern const CudaKernel cuda_adam_update;
const CudaKernel cuda_adam_update{"adam_update", make};

}  // namespace thimble
