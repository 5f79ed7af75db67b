// lstm_steps_backward, step by step from the last. One launch makes the gradients of the step's
// gates and of the c before it, one product of cuBLASLt's that of the h before it. The gates'
// gradients of all steps stay in scratch, in the dtype of the weights, so that each further
// gradient is one product with all of them.
//
//   scratch  | gates' gradients [K,B,4H] | h before each step [K,B,H] | dc [B,H] |
//            | dh [parts,B,H] | the products'        the last three f32
#include "backend/cuda/recurrent/lstm_steps.cuh"
#include "backend/cuda/reduce/fold_columns.cuh"
#include "backend/tunable_kernel.h"

namespace thimble {
namespace {

enum Input : size_t { kX, kH, kC, kWx, kWh, kGates, kCs, kHs, kLastDh, kLastDc, kDhs };

// A tensor that is null, or has no parts, counts as zero.
template <class T>
struct Step {
  const T *gates, *c, *new_c;
  const T* above;              // the gradient of the step's h, from the layer above
  const T *last_dh, *last_dc;  // those of h and c, from behind the last step
  const float* next_dc;        // or from the step that follows
  PartSums next_dh;
  T* d_gates;
  float* dc;    // of the c before the step; may be next_dc
  T* first_dc;  // in its place before the first step; may be last_dc
  bool add;     // into first_dc
  int64_t states, hidden;
};

template <class T, int kWide>
__global__ void __launch_bounds__(kStepThreads) gates_backward(Step<T> s) {
  for_each_unit<kWide>(s.states, s.hidden, [&](int64_t at, int64_t row) {
    const int64_t first = at + 3 * row;
    Vec<T, kWide> gate[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) gate[q] = load_wide<T, kWide>(s.gates + first + q * s.hidden);
    const Vec<T, kWide> c = load_wide<T, kWide>(s.c + at);
    const Vec<T, kWide> new_c = load_wide<T, kWide>(s.new_c + at);
    const Vec<T, kWide> above = load_if<T, kWide>(s.above, at);
    const Vec<T, kWide> last_dh = load_if<T, kWide>(s.last_dh, at);
    const Vec<T, kWide> last_dc = load_if<T, kWide>(s.last_dc, at);
    const Vec<float, kWide> next_dc = load_if<float, kWide>(s.next_dc, at);
    float next_dh[1][kWide] = {}, dc_before[kWide];
    add_parts<kWide, 1>(s.next_dh, at, 0, next_dh);
    float d_gate[4][kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float in = widen(gate[0].at[e]), forget = widen(gate[1].at[e]);
      const float cell = widen(gate[2].at[e]), out = widen(gate[3].at[e]);
      const float squashed = tanhf(widen(new_c.at[e]));
      const float dh = next_dh[0][e] + widen(last_dh.at[e]) + widen(above.at[e]);
      const float dc = next_dc.at[e] + widen(last_dc.at[e]);
      const float d = dc + dh * out * (1 - squashed * squashed);
      d_gate[0][e] = d * cell * in * (1 - in);
      d_gate[1][e] = d * widen(c.at[e]) * forget * (1 - forget);
      d_gate[2][e] = d * in * (1 - cell * cell);
      d_gate[3][e] = dh * squashed * out * (1 - out);
      dc_before[e] = d * forget;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      store_wide<T, kWide>(s.d_gates + first + q * s.hidden, d_gate[q], false);
    }
    if (s.first_dc != nullptr) {
      store_wide<T, kWide>(s.first_dc + at, dc_before, s.add);
    } else {
      store_wide<float, kWide>(s.dc + at, dc_before, false);
    }
  });
}

// to [K,B,H] = the h before each step: h, and hs of all steps but the last.
template <class T, int kWide>
__global__ void __launch_bounds__(kBlockThreads)
    gather_states(const T* h, const T* hs, T* to, int64_t states, int64_t count) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i * kWide < count;
       i += threads) {
    const int64_t at = i * kWide;
    *reinterpret_cast<Vec<T, kWide>*>(to + at) =
        load_wide<T, kWide>(at < states ? h + at : hs + (at - states));
  }
}

template <class T>
struct WriteSum {
  T* to;
  bool add;
  __device__ void operator()(int64_t at, double sum) const {
    store(to + at, static_cast<float>(sum), add);
  }
};

class LstmStepsBackward final : public TunableKernel {
 public:
  LstmStepsBackward(const Signature& s, CudaDevice& device)
      : device_(device),
        run_(s.inputs[kX], s.inputs[kH]),
        bias_(sum_tiles(run_.rows(), 4 * run_.hidden, s.inputs[kX].dtype, 1, device)) {
    const DType dtype = s.inputs[kX].dtype;
    const int64_t hidden = run_.hidden, rows = run_.rows(), gates = 4 * hidden;
    const auto adds = [&](int output) { return ((s.accumulate >> output) & 1u) != 0; };
    // The gates' gradients of a step lie a multiple of so many bytes into theirs.
    const ProductShape to_h = {
        .m = run_.batch,
        .n = hidden,
        .k = gates,
        .alignment = alignment_of_multiples(4 * run_.states() * size_of(dtype))};
    const ProductShape to_x = {.m = rows, .n = run_.inputs, .k = gates};
    const ProductShape to_w_x = {.m = gates, .n = run_.inputs, .k = rows, .transpose_a = true};
    const ProductShape to_w_h = {.m = gates, .n = hidden, .k = rows, .transpose_a = true};
    const auto product = [&](const ProductShape& shape, bool add) {
      return std::make_unique<CublasProduct>(device_, shape, dtype, dtype, add,
                                             scratch_limit(shape, dtype));
    };
    to_h_ = std::make_unique<StepProduct>(device_, to_h, dtype);
    to_first_h_ = product(to_h, adds(0));
    to_w_x_ = product(to_w_x, adds(2));
    to_w_h_ = product(to_w_h, adds(3));
    if (s.outputs.size() > 5) to_x_ = product(to_x, adds(5));
    gate_bytes_ = align_up(s.inputs[kGates].bytes());
    all_h_bytes_ = align_up(s.inputs[kHs].bytes());
    dc_bytes_ = align_up(Bytes(run_.states() * int64_t{sizeof(float)}));
    use(0);
  }

  int variants() const override { return to_h_->variants(); }
  int used() const override { return to_h_->used(); }
  void use(int variant) override {
    to_h_->use(variant);
    dh_bytes_ = align_up(to_h_->bytes());
    Bytes scratch = std::max(partial_bytes(bias_, 1), to_h_->scratch());
    for (const auto* product : {&to_first_h_, &to_w_x_, &to_w_h_, &to_x_}) {
      if (*product != nullptr) scratch = std::max(scratch, (*product)->scratch());
    }
    name = to_h_->name() + ", and own";
    workspace = gate_bytes_ + all_h_bytes_ + dc_bytes_ + dh_bytes_ + scratch;
  }

  void run(const KernelArgs& args) override {
    with_device_type(args.inputs[kX].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run_steps<T>(args);
      run_products<T>(args);
    });
    check_launch("lstm_steps_backward");
  }

 private:
  struct Scratch {
    std::byte *d_gates, *all_h, *dc, *dh, *rest;
  };
  Scratch scratch_of(const KernelArgs& args) const {
    std::byte* const all_h = args.workspace + gate_bytes_.count;
    std::byte* const dc = all_h + all_h_bytes_.count;
    std::byte* const dh = dc + dc_bytes_.count;
    return {args.workspace, all_h, dc, dh, dh + dh_bytes_.count};
  }

  // The gates' gradients of all steps, dh and dc.
  template <class T>
  void run_steps(const KernelArgs& args) const {
    const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
    const Scratch scratch = scratch_of(args);
    const int64_t states = run_.states();
    auto* const dh = reinterpret_cast<float*>(scratch.dh);
    auto* const dc = reinterpret_cast<float*>(scratch.dc);
    for (int64_t t = run_.steps; t-- > 0;) {
      const bool last = t + 1 == run_.steps, first = t == 0;
      Step<T> step{};
      step.gates = in(kGates) + 4 * t * states;
      step.c = first ? in(kC) : in(kCs) + (t - 1) * states;
      step.new_c = in(kCs) + t * states;
      step.above = args.inputs.size() > kDhs ? in(kDhs) + t * states : nullptr;
      step.last_dh = last ? in(kLastDh) : nullptr;
      step.last_dc = last ? in(kLastDc) : nullptr;
      step.next_dh = {dh, last ? 0 : to_h_->parts(), states};
      step.next_dc = last ? nullptr : dc;
      step.d_gates = reinterpret_cast<T*>(scratch.d_gates) + 4 * t * states;
      step.dc = dc;
      step.first_dc = first ? args.outputs[1].as<T>() : nullptr;
      step.add = args.adds_into(1);
      step.states = states;
      step.hidden = run_.hidden;
      with_wide(run_.hidden, [&](auto wide) {
        gates_backward<T, wide.value>
            <<<step_blocks(states, wide.value, device_), kStepThreads, 0, device_.stream>>>(step);
      });
      if (first) {
        to_first_h_->run(step.d_gates, in(kWh), args.outputs[0].data, scratch.rest);
      } else {
        to_h_->run(step.d_gates, in(kWh), dh, scratch.rest);
      }
    }
  }

  // Gradients that are one product, or sum, over all steps.
  template <class T>
  void run_products(const KernelArgs& args) const {
    const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
    const Scratch scratch = scratch_of(args);
    const T* const d_gates = reinterpret_cast<const T*>(scratch.d_gates);
    T* const all_h = reinterpret_cast<T*>(scratch.all_h);
    const int64_t count = run_.steps * run_.states();
    with_wide(run_.hidden, [&](auto wide) {
      gather_states<T, wide.value>
          <<<blocks_for(count / wide.value, device_), kBlockThreads, 0, device_.stream>>>(
              in(kH), in(kHs), all_h, run_.states(), count);
    });
    to_w_h_->run(d_gates, all_h, args.outputs[3].data, scratch.rest);
    to_w_x_->run(d_gates, in(kX), args.outputs[2].data, scratch.rest);
    const WriteSum<T> write{args.outputs[4].as<T>(), args.adds_into(4)};
    launch_fold_columns(d_gates, bias_, 1, SumFold{}, write, reinterpret_cast<float*>(scratch.rest),
                        device_);
    if (to_x_ != nullptr) to_x_->run(d_gates, in(kWx), args.outputs[5].data, scratch.rest);
  }

  CudaDevice& device_;
  const LstmRun run_;
  const ColumnTiles bias_;
  std::unique_ptr<StepProduct> to_h_;
  std::unique_ptr<CublasProduct> to_first_h_, to_w_x_, to_w_h_;
  std::unique_ptr<CublasProduct> to_x_;  // null: not asked for
  Bytes gate_bytes_, all_h_bytes_, dc_bytes_, dh_bytes_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[kX].dtype)) return nullptr;
  if (s.inputs[kX].elements() == 0 || s.inputs[kH].elements() == 0) return nullptr;
  return std::make_unique<LstmStepsBackward>(s, device);
}

}  // namespace

extern const CudaKernel cuda_lstm_steps_backward{"lstm_steps_backward", make};

}  // namespace thimble
