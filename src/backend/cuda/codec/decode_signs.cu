// decode_signs: one pass, a byte a thread at a time.
#include "backend/cuda/pointwise/eights.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void decode(const uint8_t* bits, T* x, int64_t count) {
  const int64_t bytes = (count + 7) / 8, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t b = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; b < bytes; b += threads) {
    const unsigned byte = bits[b];
    Eight<T> to;
#pragma unroll
    for (int e = 0; e < 8; ++e) to.at[e] = narrow<T>(static_cast<float>((byte >> e) & 1u));
    store_eight(x, 8 * b, count, to);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      decode<<<blocks_for((count + 7) / 8, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<uint8_t>(), args.outputs[0].as<T>(), count);
    });
    check_launch("decode_signs");
  });
}

}  // namespace

extern const CudaKernel cuda_decode_signs{"decode_signs", make};

}  // namespace thimble
