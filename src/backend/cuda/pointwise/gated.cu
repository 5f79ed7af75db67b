// gated: one pass over both tensors.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/gates.cuh"

namespace thimble {
namespace {

template <class G>
struct Gated {
  G gate;
  __device__ float operator()(float a, float b) const { return gate.value(a) * b; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return with_gate<DeviceGates>(gate_of("gated", s.attrs), [&](auto gate) {
    return make_elementwise<2>(s, device, Gated<decltype(gate)>{gate});
  });
}

}  // namespace

extern const CudaKernel cuda_gated{"gated", make};

}  // namespace thimble
