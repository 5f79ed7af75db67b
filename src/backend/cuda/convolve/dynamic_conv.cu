// dynamic_conv: see time_conv.cuh.
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {

extern const CudaKernel cuda_dynamic_conv{"dynamic_conv", make_time_conv<false>};

}  // namespace thimble
