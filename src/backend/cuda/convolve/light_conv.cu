// light_conv: see time_conv.cuh.
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {

extern const CudaKernel cuda_light_conv{"light_conv", make_time_conv<true>};

}  // namespace thimble
