// resample_backward: every pixel from those that it is part of.
#include "backend/cuda/convolve/resampling.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_resampling(s, device, true);
}

}  // namespace

extern const CudaKernel cuda_resample_backward{"resample_backward", make};

}  // namespace thimble
