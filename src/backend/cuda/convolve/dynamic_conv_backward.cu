// dynamic_conv_backward: see time_conv.cuh.
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {

extern const CudaKernel cuda_dynamic_conv_backward{"dynamic_conv_backward",
                                                   make_time_conv_backward<false>};

}  // namespace thimble
