// bias_act_backward: dx in one pass, then its column sums.
#include "backend/cpu/pointwise/activation.h"
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/column_sums.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const float* dy = args.inputs[0].as<const float>();
  const float* y = args.inputs.size() > 1 ? args.inputs[1].as<const float>() : dy;
  float* dx = args.outputs[0].as<float>();
  with_activation_gradient(
      *args.attrs, [&](auto map) __attribute__((always_inline)) {
        map_range(dx, begin, end, false, [=](int64_t i) { return map(y[i], dy[i]); });
      });
}

class BiasActBackward final : public Kernel {
 public:
  explicit BiasActBackward(const Signature& s)
      : map_(make_elementwise(map_alone(s), loop)),
        sums_(s.outputs[0].dtype, rows_of(s), columns_of(s)) {
    name = map_->name;
    workspace = std::max(map_->workspace, sums_.workspace());
  }

  void run(const KernelArgs& args) override {
    // Without an activation, in place: nothing to write.
    if (args.inputs.size() > 1 || args.inputs[0].data != args.outputs[0].data) {
      map_->run({args.attrs, args.inputs, args.outputs.first(1), 0, args.workspace});
    }
    sums_.run(args.outputs[0], args.workspace, 1, args.adds_into(1), args.outputs[1]);
  }

 private:
  // Without the gradient of the bias.
  static Signature map_alone(Signature s) {
    s.outputs.resize(1);
    return s;
  }
  static int64_t columns_of(const Signature& s) { return s.outputs[0].shape.back(); }
  static int64_t rows_of(const Signature& s) { return s.outputs[0].elements() / columns_of(s); }

  const std::unique_ptr<Kernel> map_;
  const ColumnSums sums_;
};

}  // namespace

extern const CpuKernel cpu_bias_act_backward{"bias_act_backward",
                                             make_where<BiasActBackward, one_stageable_type>};

}  // namespace thimble
