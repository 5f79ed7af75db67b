// relu: one pass; keeps NaN.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0 : x; }
};

}  // namespace

extern const CudaKernel cuda_relu = elementwise_kernel<1, Relu>("relu");

}  // namespace thimble
