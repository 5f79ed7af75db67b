// Updates of weights, one launch each or for several. The first inputs are tensors of one shape
// (weight, gradient, state), each of a dtype of its own. Behind them come lr f32 [1] and other
// inputs that the update names, then those of update_extras.cuh.
//
// A Step is a value with
//   kTensors, kOutputs    how many of the inputs and outputs are tensors
//   kRest                 the output that gets what the rounding of the weight leaves over; 0: none
//   begin(rate, number)   what follows from lr and the step's number, where the update reads them
//   operator()(in, out)   one element of each tensor
#pragma once

#include <span>

#include "backend/batchable_kernel.h"
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/unfused.cuh"
#include "backend/cuda/update/update_extras.cuh"

namespace thimble {

// Null: not there.
template <int kTensors, int kOutputs>
struct UpdateArguments {
  Numbers in[kTensors];
  Numbers out[kOutputs];
  int64_t count;
  const float* rate;
  const float* number;
  UpdateExtras extras;
};

// As many updates as the arguments of one launch hold. Blocks take chunks of kChunk quads, of one
// tensor after the other.
template <class Step>
struct JoinedUpdates {
  using Arguments = UpdateArguments<Step::kTensors, Step::kOutputs>;
  static constexpr size_t kMost = 3900 / (sizeof(Arguments) + sizeof(unsigned));
  static constexpr int kChunk = 8 * kBlockThreads;
  Arguments at[kMost];
  unsigned end[kMost];  // of a tensor's chunks, counted from the first tensor's first
};

template <class Step>
__global__ void update_elements(const __grid_constant__ JoinedUpdates<Step> all, Step step) {
  constexpr int kTensors = Step::kTensors, kOutputs = Step::kOutputs;
  int tensor = 0;
  while (blockIdx.x >= all.end[tensor]) ++tensor;
  const unsigned chunk = blockIdx.x - (tensor > 0 ? all.end[tensor - 1] : 0);
  const UpdateArguments<kTensors, kOutputs>& args = all.at[tensor];
  const int64_t first = int64_t{chunk} * JoinedUpdates<Step>::kChunk;
  const int64_t quads = min((args.count + 3) / 4, first + JoinedUpdates<Step>::kChunk);
  const float factor = args.extras.gradient_factor();
  const UpdateRounding rounding = args.extras.rounding();
  step.begin(args.rate != nullptr ? *args.rate : 0, args.number != nullptr ? *args.number : 0);
  const auto update = [&](int64_t q, const uint4(&bits)[kTensors]) {
    const int valid = valid_in(q, args.count);
    Quad x[kTensors], y[kOutputs];
#pragma unroll
    for (int k = 0; k < kTensors; ++k) x[k] = widen(bits[k], args.in[k].dtype);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float in[kTensors], out[kOutputs];
#pragma unroll
      for (int k = 0; k < kTensors; ++k) in[k] = x[k].at[e];
      if (args.extras.factor != nullptr) in[1] = product(factor, in[1]);
      step(in, out);
#pragma unroll
      for (int k = 0; k < kOutputs; ++k) y[k].at[e] = out[k];
    }
    const Quad wide = y[0];
    rounding.apply(y[0], args.out[0].dtype, q, 0);
    if constexpr (Step::kRest > 0) {
      if (!rounding.stochastic) round_to(y[0], args.out[0].dtype);
#pragma unroll
      for (int e = 0; e < 4; ++e) y[Step::kRest].at[e] = wide.at[e] - y[0].at[e];
    }
#pragma unroll
    for (int k = 1; k < kOutputs; ++k) rounding.apply(y[k], args.out[k].dtype, q, k);
#pragma unroll
    for (int k = 0; k < kOutputs; ++k) store_quad(args.out[k], q, y[k], valid);
  };
  // The loads of two quads are on their way together.
  for (int64_t q = first + threadIdx.x; q < quads; q += 2 * blockDim.x) {
    const int64_t second = q + blockDim.x;
    uint4 bits[2][kTensors];
#pragma unroll
    for (int k = 0; k < kTensors; ++k) {
      bits[0][k] = load_bits(args.in[k], q, valid_in(q, args.count));
      if (second < quads) {
        bits[1][k] = load_bits(args.in[k], second, valid_in(second, args.count));
      }
    }
    if (factor == 0) return;
    update(q, bits[0]);
    if (second < quads) update(second, bits[1]);
  }
}

template <class Step>
class UpdateKernel final : public BatchableKernel {
 public:
  // `scalars` of the inputs (lr, the step's number) are between the tensors and the extras.
  UpdateKernel(const Signature& s, CudaDevice& device, int scalars, Step step)
      : device_(device),
        op_(s.op),
        attrs_(s.attrs),
        scalars_(scalars),
        step_(step),
        extras_(s, static_cast<size_t>(Step::kTensors + scalars)) {
    name = "own";
    attrs_.set("stream", int64_t{0});
  }

  void run(const KernelArgs& args) override {
    const KernelArgs* const call = &args;
    run_all({&call, 1});
  }

  // All but the random streams must be the same.
  bool joins(const BatchableKernel& other) const override {
    const auto* const update = dynamic_cast<const UpdateKernel*>(&other);
    return update != nullptr && update->op_ == op_ && update->attrs_ == attrs_;
  }
  size_t most_joined() const override { return JoinedUpdates<Step>::kMost; }

  void run_all(std::span<const KernelArgs* const> calls) override {
    JoinedUpdates<Step> all = {};
    int64_t chunks = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      all.at[i] = arguments_of(*calls[i]);
      constexpr int64_t kElements = 4 * JoinedUpdates<Step>::kChunk;
      chunks += (all.at[i].count + kElements - 1) / kElements;
      all.end[i] = static_cast<unsigned>(chunks);
    }
    if (chunks == 0) return;
    update_elements<<<static_cast<unsigned>(chunks), kBlockThreads, 0, device_.stream>>>(all,
                                                                                         step_);
    check_launch("an update");
  }

 private:
  typename JoinedUpdates<Step>::Arguments arguments_of(const KernelArgs& args) const {
    typename JoinedUpdates<Step>::Arguments arguments = {};
    size_t next = 0;
    for (Numbers& in : arguments.in) in = numbers_of(args.inputs[next++]);
    for (size_t k = 0; k < Step::kOutputs; ++k) arguments.out[k] = numbers_of(args.outputs[k]);
    arguments.count = args.inputs[0].elements();
    if (scalars_ > 0) arguments.rate = args.inputs[next++].as<float>();
    if (scalars_ > 1) arguments.number = args.inputs[next++].as<float>();
    arguments.extras = extras_.of(args);
    return arguments;
  }

  CudaDevice& device_;
  const OpDef* const op_;
  Attrs attrs_;
  const int scalars_;
  const Step step_;
  const ExtraInputs extras_;
};

template <class Step>
std::unique_ptr<Kernel> make_update(const Signature& s, CudaDevice& device, int scalars,
                                    Step step) {
  for (size_t k = 0; k < Step::kTensors; ++k) {
    if (!on_device(s.inputs[k].dtype)) return nullptr;
  }
  return std::make_unique<UpdateKernel<Step>>(s, device, scalars, step);
}

}  // namespace thimble
