// lstm_cell_backward: one pass for the gradients of the gates [B,4H], which wait in the workspace;
// then a product for each gradient of a matrix.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/recurrent/lstm_step.h"
#include "backend/cpu/reduce/column_sums.h"

namespace thimble {
namespace {

class LstmCellBackward final : public Kernel {
 public:
  explicit LstmCellBackward(const Signature& s)
      : hidden_(s.inputs[1].shape[1]),
        batch_(s.inputs[0].shape[0]),
        parts_(batch_, hidden_ * 32),
        bias_(DType::f32, batch_, 4 * hidden_) {
    const int64_t inputs = s.inputs[0].shape[1], rows = 4 * hidden_;
    const auto adds = [&](int output) { return ((s.accumulate >> output) & 1u) != 0; };
    to_h_ = Product({.m = batch_, .n = hidden_, .k = rows, .add = adds(0)});
    to_w_x_ = Product({.m = rows, .n = inputs, .k = batch_, .transpose_a = true, .add = adds(2)});
    to_w_h_ = Product({.m = rows, .n = hidden_, .k = batch_, .transpose_a = true, .add = adds(3)});
    size_t scratch = static_cast<size_t>(bias_.workspace().count);
    if (s.outputs.size() > 5) {
      to_x_ = Product({.m = batch_, .n = inputs, .k = rows, .add = adds(5)});
      scratch = std::max(scratch, to_x_.scratch_bytes());
    }
    for (const Product* product : {&to_h_, &to_w_x_, &to_w_h_}) {
      scratch = std::max(scratch, product->scratch_bytes());
    }
    WorkspaceParts parts;
    d_gates_at_ = parts.take(static_cast<size_t>(batch_ * rows) * sizeof(float));
    scratch_at_ = parts.take(scratch);
    name = to_h_.name();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    auto* d_gates = reinterpret_cast<float*>(args.workspace + d_gates_at_);
    std::byte* scratch = args.workspace + scratch_at_;
    const auto in = [&](size_t i) { return args.inputs[i].as<const float>(); };
    // First of all: dh and dc may take the places of dh' and dc'.
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = b * hidden_;
        lstm_gates_backward({in(5) + 4 * at, in(2) + at, in(6) + at}, in(7) + at, in(8) + at,
                            hidden_, args.adds_into(1), d_gates + 4 * at,
                            args.outputs[1].as<float>() + at);
      }
    });
    to_w_x_.run(d_gates, in(0), args.outputs[2].data, scratch);
    to_w_h_.run(d_gates, in(1), args.outputs[3].data, scratch);
    const TensorType gates = {{batch_, 4 * hidden_}, DType::f32};
    bias_.run({d_gates, gates}, scratch, 1, args.adds_into(4), args.outputs[4]);
    to_h_.run(d_gates, in(4), args.outputs[0].data, scratch);
    if (args.outputs.size() > 5) to_x_.run(d_gates, in(3), args.outputs[5].data, scratch);
  }

 private:
  const int64_t hidden_, batch_;
  const Parts parts_;
  const ColumnSums bias_;
  Product to_h_, to_w_x_, to_w_h_, to_x_;
  int64_t d_gates_at_ = 0, scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_lstm_cell_backward{"lstm_cell_backward",
                                              make_if_supported_where<LstmCellBackward, all_f32>};

}  // namespace thimble
