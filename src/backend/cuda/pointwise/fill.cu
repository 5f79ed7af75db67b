// fill: one pass of 16 bytes a thread at a time; the last few by themselves.
#include <cstring>

#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

// The number over and over.
struct alignas(16) Pattern {
  uint8_t bytes[16];
};

__global__ void fill_bytes(Pattern* to, int64_t bytes, Pattern pattern) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < bytes / 16; i += threads) to[i] = pattern;
  if (thread < bytes % 16) to[bytes / 16].bytes[thread] = pattern.bytes[thread];
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  Pattern pattern;
  with_any_type(s.outputs[0].dtype, [&](auto tag) {
    const auto value = static_cast<typename decltype(tag)::type>(s.attrs.real("value"));
    for (size_t at = 0; at < sizeof pattern; at += sizeof value) {
      std::memcpy(pattern.bytes + at, &value, sizeof value);
    }
  });
  return own_kernel([&device, pattern](const KernelArgs& args) {
    const int64_t bytes = args.outputs[0].type.bytes().count;
    if (bytes == 0) return;
    fill_bytes<<<blocks_for((bytes + 15) / 16, device), kBlockThreads, 0, device.stream>>>(
        args.outputs[0].as<Pattern>(), bytes, pattern);
    check_launch("fill");
  });
}

}  // namespace

extern const CudaKernel cuda_fill{"fill", make};

}  // namespace thimble
