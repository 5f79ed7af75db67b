// light_conv_backward: see time_conv.cuh.
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {

extern const CudaKernel cuda_light_conv_backward{"light_conv_backward",
                                                 make_time_conv_backward<true>};

}  // namespace thimble
