// sgd_plain_kahan_update: one pass; see sgd_step.cuh.
#include "backend/cuda/update/sgd_step.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_update(s, device, 1, SgdPlainElement<true>(s.attrs));
}

}  // namespace

extern const CudaKernel cuda_sgd_plain_kahan_update;
const CudaKernel cuda_sgd_plain_kahan_update{"sgd_plain_kahan_update", make};

}  // namespace thimble
