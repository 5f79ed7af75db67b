// sigmoid: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Sigmoid {
  __device__ float operator()(float x) const { return 1 / (1 + expf(-x)); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, Sigmoid{});
}

}  // namespace

extern const CudaKernel cuda_sigmoid;
const CudaKernel cuda_sigmoid{"sigmoid", make};

}  // namespace thimble
