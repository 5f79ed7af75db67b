// encode_signs: one pass, a byte a thread at a time.
#include "backend/cuda/pointwise/eights.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void encode(const T* x, uint8_t* bits, int64_t count) {
  const int64_t bytes = (count + 7) / 8, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t b = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; b < bytes; b += threads) {
    const Eight<T> from = load_eight(x, 8 * b, count);
    unsigned byte = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) byte |= (widen(from.at[e]) > 0 ? 1u : 0u) << e;
    bits[b] = static_cast<uint8_t>(byte);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t count = args.inputs[0].elements();
    if (count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      encode<<<blocks_for((count + 7) / 8, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.outputs[0].as<uint8_t>(), count);
    });
    check_launch("encode_signs");
  });
}

}  // namespace

extern const CudaKernel cuda_encode_signs{"encode_signs", make};

}  // namespace thimble
