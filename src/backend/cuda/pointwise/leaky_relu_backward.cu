// leaky_relu_backward: one pass over the result and its gradient.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct LeakyReluBackward {
  float slope;
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : slope * dy; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const auto slope = static_cast<float>(s.attrs.real("slope", 0.01));
  return make_elementwise<2>(s, device, LeakyReluBackward{slope});
}

}  // namespace

extern const CudaKernel cuda_leaky_relu_backward{"leaky_relu_backward", make};

}  // namespace thimble
