// tanh: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, Tanh{});
}

}  // namespace

extern const CudaKernel cuda_tanh;
const CudaKernel cuda_tanh{"tanh", make};

}  // namespace thimble
