// layer_norm_backward: rows as samples of one group.
#include "backend/cuda/normalise/group_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_group_normalize_backward(s, device, row_groups(s));
}

}  // namespace

extern const CudaKernel cuda_layer_norm_backward;
const CudaKernel cuda_layer_norm_backward{"layer_norm_backward", make};

}  // namespace thimble
