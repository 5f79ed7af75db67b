// relu: one pass; keeps NaN.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0 : x; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, Relu{});
}

}  // namespace

extern const CudaKernel cuda_relu;
const CudaKernel cuda_relu{"relu", make};

}  // namespace thimble
