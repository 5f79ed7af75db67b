// tanh_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct TanhBackward {
  __device__ float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<2>(s, device, TanhBackward{});
}

}  // namespace

extern const CudaKernel cuda_tanh_backward;
const CudaKernel cuda_tanh_backward{"tanh_backward", make};

}  // namespace thimble
