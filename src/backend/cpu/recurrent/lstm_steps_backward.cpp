// lstm_steps_backward: for every step from the last, one pass for the gradients of its gates and of
// the c before it, and one product for that of the h before it. The gates' gradients of all steps
// wait in the workspace, for one product with each gradient of a matrix.
#include <algorithm>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/recurrent/lstm_step.h"
#include "backend/cpu/reduce/column_sums.h"

namespace thimble {
namespace {

enum Input : size_t { kX, kH, kC, kWx, kWh, kGates, kCs, kHs, kLastDh, kLastDc, kDhs };

class LstmStepsBackward final : public Kernel {
 public:
  explicit LstmStepsBackward(const Signature& s)
      : steps_(s.inputs[kX].shape[0]),
        batch_(s.inputs[kX].shape[1]),
        hidden_(s.inputs[kH].shape[1]),
        states_(batch_ * hidden_),
        parts_(batch_, hidden_ * 32),
        bias_(DType::f32, steps_ * batch_, 4 * hidden_) {
    const int64_t inputs = s.inputs[kX].shape[2], gates = 4 * hidden_, rows = steps_ * batch_;
    const auto adds = [&](int output) { return ((s.accumulate >> output) & 1u) != 0; };
    const bool has_dhs = s.inputs.size() > kDhs;
    to_h_ = Product({.m = batch_, .n = hidden_, .k = gates, .add = has_dhs});
    to_first_h_ = Product({.m = batch_, .n = hidden_, .k = gates, .add = adds(0)});
    to_w_x_ = Product({.m = gates, .n = inputs, .k = rows, .transpose_a = true, .add = adds(2)});
    to_w_h_ = Product({.m = gates, .n = hidden_, .k = rows, .transpose_a = true, .add = adds(3)});
    size_t scratch = static_cast<size_t>(bias_.workspace().count);
    if (s.outputs.size() > 5) {
      to_x_ = Product({.m = rows, .n = inputs, .k = gates, .add = adds(5)});
      scratch = std::max(scratch, to_x_.scratch_bytes());
    }
    for (const Product* product : {&to_h_, &to_first_h_, &to_w_x_, &to_w_h_}) {
      scratch = std::max(scratch, product->scratch_bytes());
    }
    const size_t state_bytes = static_cast<size_t>(states_) * sizeof(float);
    WorkspaceParts parts;
    d_gates_at_ = parts.take(static_cast<size_t>(4 * steps_) * state_bytes);
    all_h_at_ = parts.take(static_cast<size_t>(steps_) * state_bytes);
    dh_at_ = parts.take(state_bytes);
    dc_at_ = parts.take(state_bytes);
    scratch_at_ = parts.take(scratch);
    name = to_h_.name();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    const auto in = [&](size_t i) { return args.inputs[i].as<const float>(); };
    const auto room = [&](int64_t at) { return reinterpret_cast<float*>(args.workspace + at); };
    float *const d_gates = room(d_gates_at_), *const all_h = room(all_h_at_);
    std::byte* const scratch = args.workspace + scratch_at_;
    run_steps(args);
    std::copy_n(in(kH), states_, all_h);
    std::copy_n(in(kHs), (steps_ - 1) * states_, all_h + states_);
    to_w_x_.run(d_gates, in(kX), args.outputs[2].data, scratch);
    to_w_h_.run(d_gates, all_h, args.outputs[3].data, scratch);
    const TensorType gates = {{steps_ * batch_, 4 * hidden_}, DType::f32};
    bias_.run({d_gates, gates}, scratch, 1, args.adds_into(4), args.outputs[4]);
    if (args.outputs.size() > 5) to_x_.run(d_gates, in(kWx), args.outputs[5].data, scratch);
  }

 private:
  // The gates' gradients of all steps, dh and dc.
  void run_steps(const KernelArgs& args) {
    const auto in = [&](size_t i) { return args.inputs[i].as<const float>(); };
    const auto room = [&](int64_t at) { return reinterpret_cast<float*>(args.workspace + at); };
    const float* const dhs = args.inputs.size() > kDhs ? in(kDhs) : nullptr;
    float *const dh = room(dh_at_), *const dc = room(dc_at_);
    std::copy_n(in(kLastDh), states_, dh);
    if (dhs != nullptr) {
      for (int64_t i = 0; i < states_; ++i) dh[i] += dhs[(steps_ - 1) * states_ + i];
    }
    for (int64_t t = steps_; t-- > 0;) {
      const float* const dc_after = t + 1 == steps_ ? in(kLastDc) : dc;
      float* const dc_before = t == 0 ? args.outputs[1].as<float>() : dc;
      const bool add = t == 0 && args.adds_into(1);
      const float* const c = t == 0 ? in(kC) : in(kCs) + (t - 1) * states_;
      float* const d_gates = room(d_gates_at_) + 4 * t * states_;
      parts_.run([&](int, int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t at = b * hidden_, behind = t * states_ + at;
          lstm_gates_backward({in(kGates) + 4 * behind, c + at, in(kCs) + behind}, dh + at,
                              dc_after + at, hidden_, add, d_gates + 4 * at, dc_before + at);
        }
      });
      std::byte* const scratch = args.workspace + scratch_at_;
      if (t == 0) {
        to_first_h_.run(d_gates, in(kWh), args.outputs[0].data, scratch);
      } else {
        if (dhs != nullptr) std::copy_n(dhs + (t - 1) * states_, states_, dh);  // added to
        to_h_.run(d_gates, in(kWh), dh, scratch);
      }
    }
  }

  const int64_t steps_, batch_, hidden_, states_;
  const Parts parts_;
  const ColumnSums bias_;
  Product to_h_, to_first_h_, to_w_x_, to_w_h_, to_x_;
  int64_t d_gates_at_ = 0, all_h_at_ = 0, dh_at_ = 0, dc_at_ = 0, scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_lstm_steps_backward{"lstm_steps_backward",
                                               make_if_supported_where<LstmStepsBackward, all_f32>};

}  // namespace thimble
