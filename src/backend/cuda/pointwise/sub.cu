// sub: one pass, by packs where rows are whole packs.
#include "backend/cuda/pointwise/binary.cuh"

namespace thimble {
namespace {

struct Sub {
  __device__ float operator()(float a, float b) const { return a - b; }
};

}  // namespace

extern const CudaKernel cuda_sub = binary_kernel<Sub>("sub");

}  // namespace thimble
