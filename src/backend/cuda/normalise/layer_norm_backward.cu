// layer_norm_backward: rows in registers; else as samples of one group.
#include "backend/cuda/normalise/group_normalize.cuh"
#include "backend/cuda/normalise/row_normalize.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (fits_a_warp(s.inputs[0])) return make_row_norm_gradients<true>(s, device);
  return make_group_normalize_backward(s, device, row_groups(s));
}

}  // namespace

extern const CudaKernel cuda_layer_norm_backward{"layer_norm_backward", make};

}  // namespace thimble
