// silu_backward: one pass over the argument and the gradient.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {

extern const CudaKernel cuda_silu_backward =
    elementwise_kernel<2, GateGradient<DeviceGates::Silu>>("silu_backward");

}  // namespace thimble
