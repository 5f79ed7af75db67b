// sigmoid: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Sigmoid {
  __device__ float operator()(float x) const { return 1 / (1 + expf(-x)); }
};

}  // namespace

extern const CudaKernel cuda_sigmoid = elementwise_kernel<1, Sigmoid>("sigmoid");

}  // namespace thimble
