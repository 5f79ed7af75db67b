// Shared by the kernels between ranks: sums in the order of the ranks, as ops/ranks/shard_ranges.h
// has them, on the card.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/ranks/device_ranks.h"
#include "ops/ranks/shard_ranges.h"

namespace thimble {

template <class T>
__global__ void sum_over_ranks(OrderedSum<T> s) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < s.count; i += threads) {
    if (i >= s.held) {
      if (!s.add) s.sum[i] = narrow<T>(0.0f);
      continue;
    }
    float sum = s.add ? widen(s.sum[i]) : 0.0f;
    for (int k = 0; k < s.ranks; ++k) {
      sum = __fadd_rn(sum, widen(k == s.rank ? s.own[i] : s.staged[k * s.stride + i]));
    }
    s.sum[i] = narrow<T>(sum);
  }
}

// A kernel that ranks take part in. `body(ranks, geometry, args)` queues it.
template <class Body>
class RanksKernel final : public Kernel {
 public:
  RanksKernel(const Signature& s, int64_t elements, Bytes scratch, CudaDevice& device, Body body)
      : geometry_(shard_ranges(elements, s.attrs)),
        self_(make_device_self(geometry_.ranks, device)),
        device_(device),
        body_(std::move(body)) {
    name = "own";
    workspace = scratch;
  }
  void run(const KernelArgs& args) override {
    Communicator& ranks = device_.ranks != nullptr ? *device_.ranks : *self_;
    internal_check(ranks.size() == geometry_.ranks, "a collective for another number of ranks");
    body_(ranks, geometry_, args);
  }

 private:
  const ShardRanges geometry_;
  const std::unique_ptr<Communicator> self_;
  CudaDevice& device_;
  Body body_;
};

template <class Body>
std::unique_ptr<Kernel> ranks_kernel(const Signature& s, int64_t elements, Bytes scratch,
                                     CudaDevice& device, Body body) {
  return std::make_unique<RanksKernel<Body>>(s, elements, scratch, device, std::move(body));
}

// Runs an OrderedSum of host types by the device's.
template <class T>
auto summing_on(CudaDevice& device) {
  return [&device](const OrderedSum<T>& sum) {
    if (sum.count == 0) return;
    sum_over_ranks<<<blocks_for(sum.count, device), kBlockThreads, 0, device.stream>>>(sum);
    check_launch("sum over ranks");
  };
}

inline void copy_on_device(const std::byte* from, std::byte* to, int64_t bytes,
                           CudaDevice& device) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                        device.stream),
        "copying a part");
}

// gather_from, of an input's part to output 0.
inline std::unique_ptr<Kernel> gather_kernel(const Signature& s, size_t part, CudaDevice& device) {
  return ranks_kernel(
      s, s.outputs[0].elements(), {}, device,
      [part, &device](Communicator& ranks, const ShardRanges& g, const KernelArgs& args) {
        gather_from(ranks, g, args.inputs[part], args.outputs[0],
                    [&](const std::byte* from, std::byte* to, int64_t bytes) {
                      copy_on_device(from, to, bytes, device);
                    });
      });
}

}  // namespace thimble
