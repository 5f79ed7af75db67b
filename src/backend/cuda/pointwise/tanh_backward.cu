// tanh_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct TanhBackward {
  __device__ float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

}  // namespace

extern const CudaKernel cuda_tanh_backward = elementwise_kernel<2, TanhBackward>("tanh_backward");

}  // namespace thimble
