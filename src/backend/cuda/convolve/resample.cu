// resample: every pixel from what it is made of.
#include "backend/cuda/convolve/resampling.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_resampling(s, device, false);
}

}  // namespace

extern const CudaKernel cuda_resample{"resample", make};

}  // namespace thimble
