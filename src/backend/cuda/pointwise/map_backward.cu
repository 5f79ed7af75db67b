// map_backward: one pass over the argument and the gradient.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

template <class F>
struct MapGradient {
  F f;
  __device__ float operator()(float x, float dy) const { return dy * f.slope(x); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  std::unique_ptr<Kernel> kernel;
  with_map(s.attrs,
           [&](auto f) { kernel = make_elementwise<2>(s, device, MapGradient<decltype(f)>{f}); });
  return kernel;
}

}  // namespace

extern const CudaKernel cuda_map_backward{"map_backward", make};

}  // namespace thimble
