// silu: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {

extern const CudaKernel cuda_silu = elementwise_kernel<1, GateValue<DeviceGates::Silu>>("silu");

}  // namespace thimble
