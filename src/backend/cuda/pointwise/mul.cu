// mul: one pass, by packs where rows are whole packs.
#include "backend/cuda/pointwise/binary.cuh"

namespace thimble {
namespace {

struct Mul {
  __device__ float operator()(float a, float b) const { return a * b; }
};

}  // namespace

extern const CudaKernel cuda_mul = binary_kernel<Mul>("mul");

}  // namespace thimble
