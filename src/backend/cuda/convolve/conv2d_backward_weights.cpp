// conv2d_backward_weights: cuDNN, or own kernels where each channel has a filter of its own, or few are read.
#include "backend/cuda/convolve/cudnn_convolution.h"
#include "backend/cuda/convolve/few_channels.h"
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (std::unique_ptr<Kernel> few = make_few_channels(device, s)) return few;
  return make_convolution(device, ConvPass::weights, s);
}

}  // namespace

extern const CudaKernel cuda_conv2d_backward_weights{"conv2d_backward_weights", make};

}  // namespace thimble
