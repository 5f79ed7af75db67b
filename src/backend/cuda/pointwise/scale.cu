// scale: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Scale {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_elementwise<1>(s, device, Scale{static_cast<float>(s.attrs.real("factor"))});
}

}  // namespace

extern const CudaKernel cuda_scale{"scale", make};

}  // namespace thimble
