// count_correct: a warp or a block per row.
#include "backend/cuda/reduce/row_group.cuh"
#include "backend/cuda/reduce/scalar_sums.cuh"

namespace thimble {
namespace {

struct Best {
  float logit;
  int at;
};

// Of equal logits the first wins; a NaN wins only in the first place, where nothing is above it.
__device__ Best better(const Best& a, const Best& b) {
  return b.logit > a.logit || (b.logit == a.logit && b.at < a.at) ? b : a;
}

template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    hits(const T* logits, const int32_t* labels, int64_t rows, int classes, int64_t ignored,
         double* partial, ScalarOutput out) {
  const RowGroup<kThreads> group;
  double correct = 0;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    const T* const row = logits + r * classes;
    Best best{widen(row[0]), 0};
    for (int c = group.lane; c < classes; c += kThreads) {
      const float logit = widen(row[c]);
      if (logit > best.logit) best = {logit, c};
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      best = better(
          best, {__shfl_xor_sync(~0u, best.logit, offset), __shfl_xor_sync(~0u, best.at, offset)});
    }
    if constexpr (kThreads > 32) {
      __shared__ Best of_warps[kThreads / 32];
      __syncthreads();
      if (group.lane % 32 == 0) of_warps[group.lane / 32] = best;
      __syncthreads();
      best = of_warps[0];
      for (int w = 1; w < kThreads / 32; ++w) best = better(best, of_warps[w]);
    }
    if (group.lane == 0) correct += best.at == labels[r] && best.at != ignored ? 1 : 0;
  }
  finish_block(correct, partial, out);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& logits = s.inputs[0];
  if (!on_device(logits.dtype) || logits.elements() == 0) return nullptr;
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const int64_t ignored = s.attrs.integer("ignore_index", -1);
  const unsigned blocks = row_blocks(rows, classes, device);
  const auto launch = [&device, rows, classes, ignored, blocks](const KernelArgs& args) {
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0), nullptr};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_row_group(classes, [&](auto threads) {
        hits<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<int32_t>(), rows, static_cast<int>(classes),
            ignored, partial, out);
      });
    });
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("count_correct");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace

extern const CudaKernel cuda_count_correct{"count_correct", make};

}  // namespace thimble
