// tanh: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

}  // namespace

extern const CudaKernel cuda_tanh = elementwise_kernel<1, Tanh>("tanh");

}  // namespace thimble
