// sinusoid: a thread per number. In double, since positions are large beside a period.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/shape/rows.cuh"
#include "ops/embed/sinusoid.h"

namespace thimble {
namespace {

template <class T>
__global__ void waves(const int32_t* tokens, T* y, int64_t count, int64_t steps, int width,
                      int64_t pad, double log_ratio) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int half = width / 2;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const int64_t at = quotient(i, width);
    const int c = static_cast<int>(i - at * width);
    double value = 0;
    if (tokens[at] != pad && c < 2 * half) {
      const auto position = static_cast<double>(pad + 1 + at - quotient(at, steps) * steps);
      const double angle = position * exp(log_ratio * (c < half ? c : c - half));
      value = c < half ? sin(angle) : cos(angle);
    }
    y[i] = narrow<T>(static_cast<float>(value));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  const Sinusoid sinusoid(s.attrs);
  const double log_ratio = -std::log(10000.0) / static_cast<double>(sinusoid.half - 1);
  return own_kernel([&device, sinusoid, log_ratio](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      waves<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<int32_t>(), args.outputs[0].as<T>(), count,
          args.inputs[0].type.shape[1], static_cast<int>(sinusoid.width), sinusoid.pad, log_ratio);
    });
    check_launch("sinusoid");
  });
}

}  // namespace

extern const CudaKernel cuda_sinusoid{"sinusoid", make};

}  // namespace thimble
