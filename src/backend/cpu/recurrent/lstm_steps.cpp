// lstm_steps: one product for the inputs of all steps, straight into the saved gates; then, for
// every step, one that adds what comes from the state, and one pass.
#include <algorithm>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recurrent/lstm_step.h"

namespace thimble {
namespace {

class LstmSteps final : public Kernel {
 public:
  explicit LstmSteps(const Signature& s)
      : steps_(s.inputs[0].shape[0]),
        batch_(s.inputs[0].shape[1]),
        hidden_(s.inputs[1].shape[1]),
        parts_(batch_, hidden_ * 32) {
    const int64_t inputs = s.inputs[0].shape[2];
    from_x_ = Product({.m = steps_ * batch_, .n = 4 * hidden_, .k = inputs, .transpose_b = true});
    from_h_ =
        Product({.m = batch_, .n = 4 * hidden_, .k = hidden_, .transpose_b = true, .add = true});
    name = from_h_.name();
    workspace =
        Bytes(static_cast<int64_t>(std::max(from_x_.scratch_bytes(), from_h_.scratch_bytes())));
  }

  void run(const KernelArgs& args) override {
    const auto in = [&](size_t i) { return args.inputs[i].as<const float>(); };
    const auto out = [&](size_t k) { return args.outputs[k].as<float>(); };
    const int64_t states = batch_ * hidden_;
    from_x_.run(in(0), in(3), out(4), args.workspace);
    const float *h = in(1), *c = in(2);
    for (int64_t t = 0; t < steps_; ++t) {
      float* const gates = out(4) + 4 * t * states;
      float *const new_h = out(0) + t * states, *const new_c = out(3) + t * states;
      from_h_.run(h, in(4), gates, args.workspace);
      parts_.run([&](int, int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t at = b * hidden_;
          lstm_activate(in(5), c + at, hidden_, gates + 4 * at, new_h + at, new_c + at);
        }
      });
      h = new_h;
      c = new_c;
    }
    std::copy_n(h, states, out(1));  // only now: they may lie where the first h and c do
    std::copy_n(c, states, out(2));
  }

 private:
  const int64_t steps_, batch_, hidden_;
  const Parts parts_;
  Product from_x_, from_h_;
};

}  // namespace

extern const CpuKernel cpu_lstm_steps{"lstm_steps", make_if_supported_where<LstmSteps, all_f32>};

}  // namespace thimble
