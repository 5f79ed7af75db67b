// sgd_plain_update: one pass; see sgd_step.cuh.
#include "backend/cuda/update/sgd_step.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_update(s, device, 1, SgdPlainElement<false>(s.attrs));
}

}  // namespace

extern const CudaKernel cuda_sgd_plain_update;
const CudaKernel cuda_sgd_plain_update{"sgd_plain_update", make};

}  // namespace thimble
