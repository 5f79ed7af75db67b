// One CUDA device: cuDNN for convolutions, cuBLASLt for products, own kernels for the rest. Every
// kernel runs on one stream and in scratch that the plan owns. Stretches of a step are captured
// once and replayed as CUDA graphs.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace thimble {

// UserError, saying what to do instead, where there is no device or its driver is too old.
std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options);

}  // namespace thimble
