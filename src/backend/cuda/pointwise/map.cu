// map: one pass.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

template <class F>
struct MapValue {
  F f;
  __device__ float operator()(float x) const { return f.value(x); }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  std::unique_ptr<Kernel> kernel;
  with_map(s.attrs,
           [&](auto f) { kernel = make_elementwise<1>(s, device, MapValue<decltype(f)>{f}); });
  return kernel;
}

}  // namespace

extern const CudaKernel cuda_map{"map", make};

}  // namespace thimble
