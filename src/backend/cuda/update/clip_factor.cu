// clip_factor: one thread, in double as the reference.
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

__global__ void factor_of(const float* squares, const float* unscaling, double max_norm,
                          float* factor) {
  const double u = unscaling == nullptr ? 1 : static_cast<double>(*unscaling);
  const double norm = u * sqrt(static_cast<double>(*squares));
  const double wanted = isfinite(norm) ? fmin(1.0, max_norm / (norm + 1e-6)) : nan("");
  *factor = static_cast<float>(u == 0 ? 0 : u * wanted);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const double max_norm = s.attrs.real("max_norm");
  return own_kernel([&device, max_norm](const KernelArgs& args) {
    const float* unscaling = args.inputs.size() > 1 ? args.inputs[1].as<float>() : nullptr;
    factor_of<<<1, 1, 0, device.stream>>>(args.inputs[0].as<float>(), unscaling, max_norm,
                                          args.outputs[0].as<float>());
    check_launch("clip_factor");
  });
}

}  // namespace

extern const CudaKernel cuda_clip_factor{"clip_factor", make};

}  // namespace thimble
