// layer_norm_backward: rows as samples of one group.
#include "backend/cuda/group_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const Shape& x = s.inputs[0].shape;
  const GroupShape rows = {x.product(0, x.rank() - 1), 1, static_cast<int>(x.back()), 1, false};
  return make_group_normalize_backward(s, device, rows);
}

}  // namespace

extern const CudaKernel cuda_layer_norm_backward;
const CudaKernel cuda_layer_norm_backward{"layer_norm_backward", make};

}  // namespace thimble
