// clip_factor: one thread, in double as the reference.
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

__global__ void factor_of(const float* squares, double max_norm, float* factor) {
  const double wanted = max_norm / (sqrt(static_cast<double>(*squares)) + 1e-6);
  *factor = static_cast<float>(wanted > 1 ? 1 : wanted);  // keeps NaN
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const double max_norm = s.attrs.real("max_norm");
  return own_kernel([&device, max_norm](const KernelArgs& args) {
    factor_of<<<1, 1, 0, device.stream>>>(args.inputs[0].as<float>(), max_norm,
                                          args.outputs[0].as<float>());
    check_launch("clip_factor");
  });
}

}  // namespace

extern const CudaKernel cuda_clip_factor;
const CudaKernel cuda_clip_factor{"clip_factor", make};

}  // namespace thimble
