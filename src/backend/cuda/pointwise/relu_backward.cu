// relu_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct ReluBackward {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};

}  // namespace

extern const CudaKernel cuda_relu_backward = elementwise_kernel<2, ReluBackward>("relu_backward");

}  // namespace thimble
