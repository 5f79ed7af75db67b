// lstm_steps: one product of cuBLASLt's for the inputs of all steps. Then every step has one
// product for the state's part, and one launch that adds both up and makes gates and state. Sums
// are f32 until they are activated. Sums of the inputs lie where the gates will be if these are
// f32.
//
//   scratch  | from inputs f32 [K,B,4H], if not there | from the state [parts,B,4H] | products'
#include "backend/cuda/pointwise/activation.cuh"
#include "backend/cuda/recurrent/lstm_steps.cuh"
#include "backend/tunable_kernel.h"

namespace thimble {
namespace {

template <class T>
struct Step {
  const float* from_x;  // [B,4H]; may be `gates`
  PartSums from_h;
  const T *c, *bias;
  T *new_h, *new_c, *gates;
  T *last_h, *last_c;  // written as well, after the last step; else null. last_c may be c
  int64_t states, hidden;
};

template <class T, int kWide>
__global__ void __launch_bounds__(kStepThreads) activate(Step<T> s) {
  for_each_unit<kWide>(s.states, s.hidden, [&](int64_t at, int64_t row) {
    const int64_t first = at + 3 * row, unit = at - row;
    Vec<float, kWide> x[4];
    Vec<T, kWide> bias[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      x[q] = load_wide<float, kWide>(s.from_x + first + q * s.hidden);
      bias[q] = load_wide<T, kWide>(s.bias + unit + q * s.hidden);
    }
    const Vec<T, kWide> c = load_wide<T, kWide>(s.c + at);
    float sum[4][kWide] = {};
    add_parts<kWide, 4>(s.from_h, first, s.hidden, sum);
    float gate[4][kWide], h[kWide], state[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float z = sum[q][e] + x[q].at[e] + widen(bias[q].at[e]);
        gate[q][e] = q == 2 ? tanhf(z) : sigmoid(z);
      }
      state[e] = gate[1][e] * widen(c.at[e]) + gate[0][e] * gate[2][e];
      h[e] = gate[3][e] * tanhf(state[e]);
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      store_wide<T, kWide>(s.gates + first + q * s.hidden, gate[q], false);
    }
    store_wide<T, kWide>(s.new_h + at, h, false);
    store_wide<T, kWide>(s.new_c + at, state, false);
    if (s.last_h != nullptr) {
      store_wide<T, kWide>(s.last_h + at, h, false);
      store_wide<T, kWide>(s.last_c + at, state, false);
    }
  });
}

class LstmSteps final : public TunableKernel {
 public:
  LstmSteps(const LstmRun& lstm, DType dtype, CudaDevice& device)
      : device_(device),
        run_(lstm),
        x_bytes_(dtype == DType::f32
                     ? Bytes()
                     : align_up(Bytes(4 * lstm.steps * lstm.states() * int64_t{sizeof(float)}))),
        from_x_(device, shape(lstm.rows(), lstm.inputs), dtype, DType::f32, false,
                scratch_limit(shape(lstm.rows(), lstm.inputs), dtype)),
        from_h_(device, step_shape(dtype), dtype) {
    use(0);
  }

  int variants() const override { return from_h_.variants(); }
  int used() const override { return from_h_.used(); }
  void use(int variant) override {
    from_h_.use(variant);
    name = from_h_.name() + ", and own";
    h_bytes_ = align_up(from_h_.bytes());
    workspace = x_bytes_ + h_bytes_ + std::max(from_x_.scratch(), from_h_.scratch());
  }

  void run(const KernelArgs& args) override {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
      const auto out = [&](size_t k) { return args.outputs[k].as<T>(); };
      const int64_t states = run_.states();
      float* const from_x = std::is_same_v<T, float> ? args.outputs[4].as<float>()
                                                     : reinterpret_cast<float*>(args.workspace);
      auto* const from_h = reinterpret_cast<float*>(args.workspace + x_bytes_.count);
      std::byte* const scratch = args.workspace + (x_bytes_ + h_bytes_).count;
      from_x_.run(in(0), in(3), from_x, scratch);
      Step<T> step{};
      step.from_h = {from_h, from_h_.parts(), 4 * states};
      step.c = in(2);
      step.bias = in(5);
      step.states = states;
      step.hidden = run_.hidden;
      const T* h = in(1);
      for (int64_t t = 0; t < run_.steps; ++t) {
        step.from_x = from_x + 4 * t * states;
        step.new_h = out(0) + t * states;
        step.new_c = out(3) + t * states;
        step.gates = out(4) + 4 * t * states;
        if (t + 1 == run_.steps) step.last_h = out(1), step.last_c = out(2);
        from_h_.run(h, in(4), from_h, scratch);
        with_wide(run_.hidden, [&](auto wide) {
          activate<T, wide.value>
              <<<step_blocks(states, wide.value, device_), kStepThreads, 0, device_.stream>>>(step);
        });
        h = step.new_h;
        step.c = step.new_c;
      }
    });
    check_launch("lstm_steps");
  }

 private:
  ProductShape shape(int64_t rows, int64_t depth) const {
    return {.m = rows, .n = 4 * run_.hidden, .k = depth, .transpose_b = true};
  }
  // The states of a step lie a multiple of their bytes into those of all.
  ProductShape step_shape(DType dtype) const {
    ProductShape result = shape(run_.batch, run_.hidden);
    result.alignment = alignment_of_multiples(run_.states() * size_of(dtype));
    return result;
  }

  CudaDevice& device_;
  const LstmRun run_;
  const Bytes x_bytes_;
  const CublasProduct from_x_;
  StepProduct from_h_;
  Bytes h_bytes_;  // of its results, in parts
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.inputs[0].dtype;
  if (!on_device(dtype) || s.inputs[0].elements() == 0 || s.inputs[1].elements() == 0) {
    return nullptr;
  }
  return std::make_unique<LstmSteps>(LstmRun(s.inputs[0], s.inputs[1]), dtype, device);
}

}  // namespace

extern const CudaKernel cuda_lstm_steps{"lstm_steps", make};

}  // namespace thimble
