// Updates of weights, one launch each. The first inputs are tensors of one shape (weight, gradient,
// state), each of a dtype of its own; behind them lr f32 [1] and what else the update names; behind
// these what update_extras.cuh says.
//
// A Step is a value with
//   kTensors, kOutputs    how many of the inputs and outputs are tensors
//   kRest                 the output that gets what the rounding of the weight leaves over; 0: none
//   begin(rate, number)   what follows from lr and the step's number, where the update reads them
//   operator()(in, out)   one element of each tensor
#pragma once

#include "backend/cuda/elementwise.cuh"
#include "backend/cuda/unfused.cuh"
#include "backend/cuda/update_extras.cuh"

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

template <class Step>
__global__ void update_elements(UpdateArguments<Step::kTensors, Step::kOutputs> args, Step step) {
  constexpr int kTensors = Step::kTensors, kOutputs = Step::kOutputs;
  const int64_t quads = (args.count + 3) / 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const float factor = args.extras.gradient_factor();
  const UpdateRounding rounding = args.extras.rounding();
  step.begin(args.rate != nullptr ? *args.rate : 0, args.number != nullptr ? *args.number : 0);
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads; q += threads) {
    const int valid = valid_in(q, args.count);
    uint4 bits[kTensors];
#pragma unroll
    for (int k = 0; k < kTensors; ++k) bits[k] = load_bits(args.in[k], q, valid);
    if (factor == 0) return;
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
  }
}

// `scalars` of the inputs (lr, the step's number) are between the tensors and the extras.
template <class Step>
std::unique_ptr<Kernel> make_update(const Signature& s, CudaDevice& device, int scalars,
                                    Step step) {
  for (size_t k = 0; k < Step::kTensors; ++k) {
    if (!on_device(s.inputs[k].dtype)) return nullptr;
  }
  const ExtraInputs extras(s, static_cast<size_t>(Step::kTensors + scalars));
  return own_kernel([&device, scalars, step, extras](const KernelArgs& args) {
    UpdateArguments<Step::kTensors, Step::kOutputs> arguments = {};
    size_t next = 0;
    for (Numbers& in : arguments.in) in = numbers_of(args.inputs[next++]);
    for (size_t k = 0; k < Step::kOutputs; ++k) arguments.out[k] = numbers_of(args.outputs[k]);
    arguments.count = args.inputs[0].elements();
    if (scalars > 0) arguments.rate = args.inputs[next++].as<float>();
    if (scalars > 1) arguments.number = args.inputs[next++].as<float>();
    arguments.extras = extras.of(args);
    if (arguments.count == 0) return;
    const unsigned blocks = blocks_for((arguments.count + 3) / 4, device);
    update_elements<<<blocks, kBlockThreads, 0, device.stream>>>(arguments, step);
    check_launch("an update");
  });
}

}  // namespace thimble
