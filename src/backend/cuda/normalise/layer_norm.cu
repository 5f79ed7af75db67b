// layer_norm: rows as samples of one group.
#include "backend/cuda/normalise/group_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_group_normalize(s, device, row_groups(s));
}

}  // namespace

extern const CudaKernel cuda_layer_norm;
const CudaKernel cuda_layer_norm{"layer_norm", make};

}  // namespace thimble
