// where: bits that are moved, a thread per number.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/shape/rows.cuh"
#include "ops/pointwise/where.h"

namespace thimble {
namespace {

template <class Bits>
__global__ void pick(WhereMask mask, const Bits* a, const Bits* b, Bits* y, int64_t count) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const int64_t at = quotient(i, mask.behind);
    const bool set = mask.bytes != nullptr ? mask.bytes[at] != 0 : mask.numbers[at] != 0;
    if (set != mask.negate) {
      y[i] = a[i];
    } else {
      y[i] = b != nullptr ? b[i] : Bits{0};
    }
  }
}

template <class Bits>
void launch(const KernelArgs& args, const CudaDevice& device) {
  const int64_t count = args.outputs[0].elements();
  pick<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
      WhereMask(args), args.inputs[1].as<const Bits>(),
      args.inputs.size() > 2 ? args.inputs[2].as<const Bits>() : nullptr,
      args.outputs[0].as<Bits>(), count);
  check_launch("where");
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    if (args.outputs[0].type.dtype == DType::f32) {
      launch<uint32_t>(args, device);
    } else {
      launch<uint16_t>(args, device);
    }
  });
}

}  // namespace

extern const CudaKernel cuda_where{"where", make};

}  // namespace thimble
