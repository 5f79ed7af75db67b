// gradient_factor: one thread.
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

__global__ void factor_of(const float* loss_scale, const float* overflow, float* factor) {
  *factor = *overflow > 0 ? 0 : __frcp_rn(*loss_scale);
}

std::unique_ptr<Kernel> make(const Signature&, CudaDevice& device) {
  return own_kernel([&device](const KernelArgs& args) {
    factor_of<<<1, 1, 0, device.stream>>>(args.inputs[0].as<float>(), args.inputs[1].as<float>(),
                                          args.outputs[0].as<float>());
    check_launch("gradient_factor");
  });
}

}  // namespace

extern const CudaKernel cuda_gradient_factor{"gradient_factor", make};

}  // namespace thimble
