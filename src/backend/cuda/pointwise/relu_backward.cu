// relu_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct ReluBackward {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<2>(s, device, ReluBackward{});
}

}  // namespace

extern const CudaKernel cuda_relu_backward;
const CudaKernel cuda_relu_backward{"relu_backward", make};

}  // namespace thimble
