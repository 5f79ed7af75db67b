// group_norm: a warp or a block per sample's group.
#include "backend/cuda/group_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const Shape& x = s.inputs[0].shape;
  const GroupShape groups = {x[0], static_cast<int>(x[1] * x[2]), static_cast<int>(x[3]),
                             static_cast<int>(s.attrs.integer("groups")),
                             s.attrs.text("act", "none") == "relu"};
  return make_group_normalize(s, device, groups);
}

}  // namespace

extern const CudaKernel cuda_group_norm;
const CudaKernel cuda_group_norm{"group_norm", make};

}  // namespace thimble
