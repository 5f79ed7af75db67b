// conv2d_backward_data: cuDNN, or own kernels where each channel has a filter of its own.
#include "backend/cuda/convolve/cudnn_convolution.h"
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_convolution(device, ConvPass::data, s);
}

}  // namespace

extern const CudaKernel cuda_conv2d_backward_data{"conv2d_backward_data", make};

}  // namespace thimble
