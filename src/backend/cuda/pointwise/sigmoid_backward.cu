// sigmoid_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct SigmoidBackward {
  __device__ float operator()(float y, float dy) const { return dy * y * (1 - y); }
};

}  // namespace

extern const CudaKernel cuda_sigmoid_backward =
    elementwise_kernel<2, SigmoidBackward>("sigmoid_backward");

}  // namespace thimble
