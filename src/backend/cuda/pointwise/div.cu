// div: one pass, by packs where rows are whole packs.
#include "backend/cuda/pointwise/binary.cuh"

namespace thimble {
namespace {

struct Div {
  __device__ float operator()(float a, float b) const { return a / b; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_binary(s, device, Div{});
}

}  // namespace

extern const CudaKernel cuda_div{"div", make};

}  // namespace thimble
