// conv2d: cuDNN, or own kernels where each channel has a filter of its own.
#include "backend/cuda/convolve/cudnn_convolution.h"
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_convolution(device, ConvPass::forward, s);
}

}  // namespace

extern const CudaKernel cuda_conv2d{"conv2d", make};

}  // namespace thimble
