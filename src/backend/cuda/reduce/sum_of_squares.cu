// sum_of_squares: one pass.
#include "backend/cuda/reduce/scalar_sums.cuh"

namespace thimble {
namespace {

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_sum_of_terms(s, device, Square{});
}

}  // namespace

extern const CudaKernel cuda_sum_of_squares{"sum_of_squares", make};

}  // namespace thimble
