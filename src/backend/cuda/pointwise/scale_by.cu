// scale_by: one pass; the factor is read on the device.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct ScaleBy {
  const float* factor;
  __device__ float operator()(float x) const { return __ldg(factor) * x; }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!can_map(s, 1)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    run_elementwise<1>(args, device, ScaleBy{args.inputs[1].as<float>()});
  });
}

}  // namespace

extern const CudaKernel cuda_scale_by{"scale_by", make};

}  // namespace thimble
