// decode_groups: one pass, eight numbers a thread at a time.
#include "backend/cuda/codec/group_codes.cuh"

namespace thimble {
namespace {

template <int kBits, bool kZeros, class T>
__global__ void decode(const uint8_t* packed, const float2* ranges, T* x, int64_t count) {
  const int64_t eights = (count + 7) / 8, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < eights; i += threads) {
    const LaneCodes<kBits> codes = load_codes<kBits>(packed, 8 * i, count);
    const float2 range = ranges[8 * i / kCodeGroup];
    Eight<T> to;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const auto level = static_cast<unsigned>(codes >> (kBits * e)) & ((1u << kBits) - 1);
      to.at[e] = narrow<T>(decode_level<kZeros>({range.x, range.y}, static_cast<int>(level)));
    }
    store_eight(x, 8 * i, count, to);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const int64_t bits = s.attrs.integer("bits");
  const bool zeros = s.attrs.integer("zeros", 0) != 0;
  return own_kernel([&device, bits, zeros](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto launch = [&](auto kernel) {
        kernel<<<blocks_for((count + 7) / 8, device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<uint8_t>(), args.inputs[1].as<float2>(), args.outputs[0].as<T>(),
            count);
      };
      with_group_code(bits, zeros, [&](auto known_bits, auto known_zeros) {
        launch(decode<known_bits.value, known_zeros.value, T>);
      });
    });
    check_launch("decode_groups");
  });
}

}  // namespace

extern const CudaKernel cuda_decode_groups{"decode_groups", make};

}  // namespace thimble
