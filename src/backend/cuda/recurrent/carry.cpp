// carry: a copy on the device's stream.
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature&, CudaDevice& device) {
  return own_kernel([&device](const KernelArgs& args) {
    const auto bytes = static_cast<size_t>(args.outputs[0].type.bytes().count);
    check(cudaMemcpyAsync(args.outputs[0].data, args.inputs[1].data, bytes,
                          cudaMemcpyDeviceToDevice, device.stream),
          "carrying a state");
  });
}

}  // namespace

extern const CudaKernel cuda_carry{"carry", make};

}  // namespace thimble
