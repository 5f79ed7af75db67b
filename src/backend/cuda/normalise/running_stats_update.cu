// running_stats_update: both statistics, and those of many layers, in one launch.
#include <algorithm>

#include "backend/batchable_kernel.h"
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

struct Statistics {
  const void *mean, *var, *batch_mean, *batch_var;
  void *new_mean, *new_var;
  int64_t count;
  int batches;  // one behind the other
  float towards_var;
};

constexpr size_t kMost = 48;  // what the arguments of one launch hold

struct JoinedStatistics {
  Statistics at[kMost];
};

// Row y of the grid has the y-th.
template <class T>
__global__ void move_statistics(const __grid_constant__ JoinedStatistics all, float keep,
                                float towards_mean) {
  const Statistics& s = all.at[blockIdx.y];
  const int64_t c = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (c >= s.count) return;
  const auto of = [](const void* data, int64_t at) {
    return widen(static_cast<const T*>(data)[at]);
  };
  T mean = static_cast<const T*>(s.mean)[c], var = static_cast<const T*>(s.var)[c];
  for (int k = 0; k < s.batches; ++k) {
    const int64_t at = k * s.count + c;
    mean = narrow<T>(keep * widen(mean) + towards_mean * of(s.batch_mean, at));
    var = narrow<T>(keep * widen(var) + s.towards_var * of(s.batch_var, at));
  }
  static_cast<T*>(s.new_mean)[c] = mean;
  static_cast<T*>(s.new_var)[c] = var;
}

class RunningStats final : public BatchableKernel {
 public:
  RunningStats(const Signature& s, CudaDevice& device)
      : device_(device), dtype_(s.inputs[0].dtype), momentum_(s.attrs.real("momentum", 0.1)) {
    name = "own";
  }

  void run(const KernelArgs& args) override {
    const KernelArgs* const call = &args;
    run_all({&call, 1});
  }
  bool joins(const BatchableKernel& other) const override {
    const auto* const same = dynamic_cast<const RunningStats*>(&other);
    return same != nullptr && same->dtype_ == dtype_ && same->momentum_ == momentum_;
  }
  size_t most_joined() const override { return kMost; }

  void run_all(std::span<const KernelArgs* const> calls) override {
    JoinedStatistics all = {};
    int64_t most = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      all.at[i] = statistics_of(*calls[i]);
      most = std::max(most, all.at[i].count);
    }
    if (most == 0) return;
    const dim3 grid(static_cast<unsigned>((most + kBlockThreads - 1) / kBlockThreads),
                    static_cast<unsigned>(calls.size()));
    with_device_type(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      move_statistics<T><<<grid, kBlockThreads, 0, device_.stream>>>(
          all, static_cast<float>(1 - momentum_), static_cast<float>(momentum_));
    });
    check_launch("running_stats_update");
  }

 private:
  Statistics statistics_of(const KernelArgs& args) const {
    const double samples = static_cast<double>(args.attrs->integer("count"));
    const int64_t channels = args.outputs[0].elements();
    return {args.inputs[0].data,
            args.inputs[1].data,
            args.inputs[2].data,
            args.inputs[3].data,
            args.outputs[0].data,
            args.outputs[1].data,
            channels,
            static_cast<int>(args.inputs[2].elements() / std::max<int64_t>(1, channels)),
            static_cast<float>(momentum_ * (samples / (samples - 1)))};
  }

  CudaDevice& device_;
  const DType dtype_;
  const double momentum_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return std::make_unique<RunningStats>(s, device);
}

}  // namespace

extern const CudaKernel cuda_running_stats_update{"running_stats_update", make};

}  // namespace thimble
