// layer_norm: rows in registers; else as samples of one group.
#include "backend/cuda/normalise/group_normalize.cuh"
#include "backend/cuda/normalise/row_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (fits_a_warp(s.inputs[0])) return make_normalize_rows<true>(device);
  return make_group_normalize(s, device, row_groups(s));
}

}  // namespace

extern const CudaKernel cuda_layer_norm{"layer_norm", make};

}  // namespace thimble
