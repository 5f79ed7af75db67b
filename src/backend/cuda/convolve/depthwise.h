// Convolutions with a filter of its own for every channel: cuDNN's deterministic engines take many
// times as long for them as their bytes would.
#pragma once

#include "backend/cuda/convolve/cudnn_convolution.h"

namespace thimble {

// Null where the shape is none of them, or one that cuDNN is left to: squares of 3, 5 or 7 taps by
// steps of 1 or 2, an even number of channels.
std::unique_ptr<Kernel> make_depthwise(CudaDevice& device, ConvPass pass, const ConvShape& shape);

}  // namespace thimble
