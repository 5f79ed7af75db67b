// count_nonfinite: all tensors in one launch, a row of the grid for each; a number is not finite
// when its exponent is all ones.
#include <array>

#include "backend/cuda/pointwise/quads.cuh"
#include "backend/cuda/reduce/scalar_sums.cuh"

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

__device__ unsigned nonfinite_in(uint4 bits, DType dtype) {
  if (dtype == DType::f32) {
    constexpr uint32_t kExponent = 0x7f800000u;
    return nonfinite(bits.x, kExponent) + nonfinite(bits.y, kExponent) +
           nonfinite(bits.z, kExponent) + nonfinite(bits.w, kExponent);
  }
  const uint32_t exponent = dtype == DType::f16 ? 0x7c00u : 0x7f80u;
  return nonfinite(bits.x & 0xffffu, exponent) + nonfinite(bits.x >> 16, exponent) +
         nonfinite(bits.y & 0xffffu, exponent) + nonfinite(bits.y >> 16, exponent);
}

__global__ void count_all(const __grid_constant__ Tensors tensors, double* partial,
                          ScalarOutput out) {
  constexpr int kAtOnce = 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const Numbers x = tensors.at[blockIdx.y];
  const int64_t elements = tensors.elements[blockIdx.y], quads = (elements + 3) / 4;
  unsigned own = 0;
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads;
       q += kAtOnce * threads) {
    uint4 bits[kAtOnce] = {};
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t at = q + u * threads;
      if (at < quads) bits[u] = load_bits(x, at, valid_in(at, elements));
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) own += nonfinite_in(bits[u], x.dtype);
  }
  finish_block(static_cast<double>(own), partial, out);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  int64_t most = 0;
  for (const TensorType& input : s.inputs) {
    if (!on_device(input.dtype)) return nullptr;
    most = std::max(most, input.elements());
  }
  if (s.inputs.empty() || s.inputs.size() > kMost) return nullptr;
  const unsigned rows = static_cast<unsigned>(s.inputs.size());
  const unsigned enough = static_cast<unsigned>(device.multiprocessors) * 8 / rows;
  const dim3 grid(std::min(blocks_for((most + 15) / 16, device), std::max(1u, enough)), rows);
  const unsigned blocks = grid.x * grid.y;
  const auto launch = [&device, grid, blocks](const KernelArgs& args) {
    Tensors tensors = {};
    for (const TensorRef& input : args.inputs) {
      tensors.at[tensors.count] = numbers_of(input);
      tensors.elements[tensors.count++] = input.elements();
    }
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0), nullptr};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    count_all<<<grid, kBlockThreads, 0, device.stream>>>(tensors, partial, out);
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("count_nonfinite");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace

extern const CudaKernel cuda_count_nonfinite{"count_nonfinite", make};

}  // namespace thimble
