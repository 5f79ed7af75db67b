// bias_act_backward: dx in one pass, then its column sums.
#include "backend/cpu/activation.h"
#include "backend/cpu/column_sums.h"
#include "backend/cpu/elementwise.h"

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
  explicit BiasActBackward(const Shape& x)
      : parts_(x.elements(), 1), sums_(x.elements() / x.back(), x.back()) {
    name = "own";
    workspace = sums_.workspace();
  }

  void run(const KernelArgs& args) override {
    // Without an activation, in place: nothing to write.
    if (args.inputs.size() > 1 || args.inputs[0].data != args.outputs[0].data) {
      parts_.run([&](int, int64_t begin, int64_t end) { loop(args, begin, end); });
    }
    sums_.run(args.outputs[0].as<const float>(), args.workspace, 1, args.adds_into(1),
              args.outputs[1].as<float>());
  }

 private:
  const Parts parts_;
  const ColumnSums sums_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? std::make_unique<BiasActBackward>(s.inputs[0].shape) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_bias_act_backward;
const CpuKernel cpu_bias_act_backward{"bias_act_backward", make};

}  // namespace thimble
