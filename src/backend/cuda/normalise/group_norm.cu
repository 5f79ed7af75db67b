// group_norm: a warp or a block per sample's group.
#include "backend/cuda/normalise/group_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_group_normalize(s, device, image_groups(s));
}

}  // namespace

extern const CudaKernel cuda_group_norm{"group_norm", make};

}  // namespace thimble
