// Sums of a whole tensor to one number: threads in float, blocks and what they leave in double, in
// an order that depends on the number of blocks alone.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

// The sum over all threads of the block, in its first. All threads must come here.
__device__ inline double block_sum(double own) {
  __shared__ double of_warps[32];
  for (int offset = 16; offset > 0; offset /= 2) own += __shfl_down_sync(~0u, own, offset);
  if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x != 0) return 0;
  for (unsigned w = 1; w < blockDim.x / 32; ++w) own += of_warps[w];
  return own;
}

// Where a sum goes: factor * sum, written or added.
struct ScalarOutput {
  float* to;
  bool add;
  const float* factor;  // null: 1

  __device__ void operator()(double sum) const {
    if (factor != nullptr) sum *= static_cast<double>(*factor);
    store(to, static_cast<float>(sum), add);
  }
};

// The end of a kernel that sums: its block's share, to `partial` or, in a grid of one, to `out`.
__device__ inline void finish_block(double own, double* partial, const ScalarOutput& out) {
  const double sum = block_sum(own);
  if (threadIdx.x != 0) return;
  if (gridDim.x * gridDim.y == 1) {
    out(sum);
  } else {
    partial[blockIdx.y * gridDim.x + blockIdx.x] = sum;
  }
}

static __global__ void add_partial_sums(const double* partial, int count, ScalarOutput out) {
  double own = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    own += partial[i];
  }
  const double sum = block_sum(own);
  if (threadIdx.x == 0) out(sum);
}

// After a kernel of `blocks` blocks that ended with finish_block().
inline void launch_add_partial_sums(const double* partial, unsigned blocks, const ScalarOutput& out,
                                    const CudaDevice& device) {
  if (blocks == 1) return;
  add_partial_sums<<<1, kBlockThreads, 0, device.stream>>>(partial, static_cast<int>(blocks), out);
}

inline Bytes scalar_scratch(unsigned blocks) {
  return blocks == 1 ? Bytes() : Bytes(int64_t{blocks} * int64_t{sizeof(double)});
}

template <class T, class Term>
__global__ void __launch_bounds__(kColumnThreads)
    sum_terms(const T* x, int64_t count, Term term, double* partial, ScalarOutput out) {
  constexpr int kPack = Pack<T>::kCount, kAtOnce = 4;
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t packs = count / kPack;
  float sum[kAtOnce] = {};
  for (int64_t p = thread; p < packs; p += kAtOnce * threads) {
    Pack<T> in[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (p + u * threads < packs) in[u] = reinterpret_cast<const Pack<T>*>(x)[p + u * threads];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (p + u * threads >= packs) continue;
#pragma unroll
      for (int e = 0; e < kPack; ++e) sum[u] += term(widen(in[u].at[e]));
    }
  }
  for (int64_t i = packs * kPack + thread; i < count; i += threads) sum[0] += term(widen(x[i]));
  finish_block(static_cast<double>(sum[0]) + static_cast<double>(sum[1]) +
                   (static_cast<double>(sum[2]) + static_cast<double>(sum[3])),
               partial, out);
}

// The sum of term(x) over a tensor, into a scalar.
template <class Term>
std::unique_ptr<Kernel> make_sum_of_terms(const Signature& s, CudaDevice& device, Term term) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype)) return nullptr;
  const int64_t per_block = kColumnThreads * int64_t{16} * 16 / size_of(x.dtype);
  const unsigned blocks = static_cast<unsigned>(std::clamp<int64_t>(
      (x.elements() + per_block - 1) / per_block, 1, int64_t{device.multiprocessors} * 2));
  const auto launch = [&device, blocks, term](const KernelArgs& args) {
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0), nullptr};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      sum_terms<<<blocks, kColumnThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs[0].elements(), term, partial, out);
    });
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("a sum");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace thimble
