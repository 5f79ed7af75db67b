// leaky_relu: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct LeakyRelu {
  float slope;
  __device__ float operator()(float x) const { return x < 0 ? slope * x : x; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, LeakyRelu{static_cast<float>(s.attrs.real("slope", 0.01))});
}

}  // namespace

extern const CudaKernel cuda_leaky_relu{"leaky_relu", make};

}  // namespace thimble
