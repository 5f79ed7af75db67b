// count_nonfinite: one pass.
#include "backend/cuda/scalar_sums.cuh"

namespace thimble {
namespace {

struct IsNotFinite {
  __device__ float operator()(float x) const { return isfinite(x) ? 0 : 1; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_sum_of_terms(s, device, IsNotFinite{});
}

}  // namespace

extern const CudaKernel cuda_count_nonfinite;
const CudaKernel cuda_count_nonfinite{"count_nonfinite", make};

}  // namespace thimble
