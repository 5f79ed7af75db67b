// lstm_cell: two products straight into the saved gates, then one pass over them.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recurrent/lstm_step.h"

namespace thimble {
namespace {

class LstmCell final : public Kernel {
 public:
  explicit LstmCell(const Signature& s)
      : hidden_(s.inputs[1].shape[1]), parts_(s.inputs[0].shape[0], hidden_ * 32) {
    const int64_t batch = s.inputs[0].shape[0], inputs = s.inputs[0].shape[1];
    from_x_ = Product({.m = batch, .n = 4 * hidden_, .k = inputs, .transpose_b = true});
    from_h_ =
        Product({.m = batch, .n = 4 * hidden_, .k = hidden_, .transpose_b = true, .add = true});
    name = from_h_.name();
    workspace =
        Bytes(static_cast<int64_t>(std::max(from_x_.scratch_bytes(), from_h_.scratch_bytes())));
  }

  void run(const KernelArgs& args) override {
    float* gates = args.outputs[2].as<float>();
    from_x_.run(args.inputs[0].data, args.inputs[3].data, gates, args.workspace);
    from_h_.run(args.inputs[1].data, args.inputs[4].data, gates, args.workspace);
    const float* bias = args.inputs[5].as<const float>();
    const float* c = args.inputs[2].as<const float>();
    float* h_after = args.outputs[0].as<float>();
    float* c_after = args.outputs[1].as<float>();
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = b * hidden_;
        lstm_activate(bias, c + at, hidden_, gates + 4 * at, h_after + at, c_after + at);
      }
    });
  }

 private:
  const int64_t hidden_;
  const Parts parts_;
  Product from_x_, from_h_;
};

}  // namespace

extern const CpuKernel cpu_lstm_cell{"lstm_cell", make_if_supported_where<LstmCell, all_f32>};

}  // namespace thimble
