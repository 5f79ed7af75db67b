// Gradients of large filters over images of few channels (the first layer of most nets) in 16 bits:
// cuDNN's deterministic engines want multiples of eight channels, and take a hundred times as long
// without them.
#pragma once

#include "backend/cuda/convolve/cudnn_convolution.h"

namespace thimble {

// conv2d_backward_weights with zeros for the channels that are missing, or as a product of patches
// where those do not overlap. Null where the signature is none of these.
std::unique_ptr<Kernel> make_few_channels(CudaDevice& device, const Signature& s);

}  // namespace thimble
