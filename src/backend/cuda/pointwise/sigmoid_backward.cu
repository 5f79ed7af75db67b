// sigmoid_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct SigmoidBackward {
  __device__ float operator()(float y, float dy) const { return dy * y * (1 - y); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<2>(s, device, SigmoidBackward{});
}

}  // namespace

extern const CudaKernel cuda_sigmoid_backward;
const CudaKernel cuda_sigmoid_backward{"sigmoid_backward", make};

}  // namespace thimble
