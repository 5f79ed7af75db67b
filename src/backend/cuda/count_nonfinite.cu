// count_nonfinite: all tensors in one pass, block after block; a number is not finite when its
// exponent is all ones.
#include <array>

#include "backend/cuda/quads.cuh"
#include "backend/cuda/scalar_sums.cuh"

namespace thimble {
namespace {

constexpr size_t kMost = 48;  // tensors of one launch

struct Tensors {
  Numbers at[kMost];
  int64_t elements[kMost];
  int count;
};

__device__ unsigned nonfinite(uint32_t bits, uint32_t exponent) {
  return (bits & exponent) == exponent ? 1 : 0;
}

__global__ void count_all(Tensors tensors, double* partial, ScalarOutput out) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  unsigned own = 0;
  for (int t = 0; t < tensors.count; ++t) {
    const Numbers x = tensors.at[t];
    const int64_t elements = tensors.elements[t];
    for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; 4 * q < elements;
         q += threads) {
      const uint4 bits = load_bits(x, q, valid_in(q, elements));
      if (x.dtype == DType::f32) {
        own += nonfinite(bits.x, 0x7f800000u) + nonfinite(bits.y, 0x7f800000u) +
               nonfinite(bits.z, 0x7f800000u) + nonfinite(bits.w, 0x7f800000u);
      } else {
        const uint32_t exponent = x.dtype == DType::f16 ? 0x7c00u : 0x7f80u;
        own += nonfinite(bits.x & 0xffffu, exponent) + nonfinite(bits.x >> 16, exponent) +
               nonfinite(bits.y & 0xffffu, exponent) + nonfinite(bits.y >> 16, exponent);
      }
    }
  }
  finish_block(static_cast<double>(own), partial, out);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  int64_t most = 0;
  for (const TensorType& input : s.inputs) {
    if (!on_device(input.dtype)) return nullptr;
    most = std::max(most, input.elements());
  }
  if (s.inputs.size() > kMost) return nullptr;
  const unsigned blocks = blocks_for((most + 15) / 16, device);
  const auto launch = [&device, blocks](const KernelArgs& args) {
    Tensors tensors = {};
    for (const TensorRef& input : args.inputs) {
      tensors.at[tensors.count] = numbers_of(input);
      tensors.elements[tensors.count++] = input.elements();
    }
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0), nullptr};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    count_all<<<blocks, kBlockThreads, 0, device.stream>>>(tensors, partial, out);
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("count_nonfinite");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace

extern const CudaKernel cuda_count_nonfinite;
const CudaKernel cuda_count_nonfinite{"count_nonfinite", make};

}  // namespace thimble
