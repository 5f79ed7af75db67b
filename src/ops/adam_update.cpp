// adam_update(w, g, m, v, lr f32 [1], step f32 [1]) -> (w, m, v)
// attrs beta1 (0.9), beta2 (0.999), epsilon (1e-8), weight_decay (0), decoupled (0).
//   decoupled (AdamW): w shrinks by lr weight_decay w first; else g gains weight_decay w
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
//   w' = w - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + epsilon)
// As PyTorch's Adam and AdamW. step counts from 1.
#include <cmath>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("adam_update", inputs, 6);
  check_floating("adam_update", "weight", inputs[0]);
  check_type("adam_update", "gradient", inputs[1], inputs[0]);
  check_type("adam_update", "first moment", inputs[2], inputs[0]);
  check_type("adam_update", "second moment", inputs[3], inputs[0]);
  check_type("adam_update", "learning rate", inputs[4], {{1}, DType::f32});
  check_type("adam_update", "step", inputs[5], {{1}, DType::f32});
  return {inputs[0], inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  const double beta1 = args.attrs->real("beta1", 0.9);
  const double beta2 = args.attrs->real("beta2", 0.999);
  const double lr = static_cast<double>(*args.inputs[4].as<float>());
  const double step = static_cast<double>(*args.inputs[5].as<float>());
  const double decay = args.attrs->real("weight_decay", 0);
  const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const auto real = [](double value) { return static_cast<Real>(value); };
    const Real shrink = decoupled ? real(1 - lr * decay) : Real{1};
    const Real penalty = decoupled ? Real{0} : real(decay);
    const Real step_size = real(lr / (1 - std::pow(beta1, step)));
    const Real root_correction = real(std::sqrt(1 - std::pow(beta2, step)));
    const Real epsilon = real(args.attrs->real("epsilon", 1e-8));
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const Real w = widen(args.inputs[0].as<T>()[i]);
      const Real g = widen(args.inputs[1].as<T>()[i]) + penalty * w;
      const Real m = real(beta1) * widen(args.inputs[2].as<T>()[i]) + real(1 - beta1) * g;
      const Real v = real(beta2) * widen(args.inputs[3].as<T>()[i]) + real(1 - beta2) * g * g;
      const Real denominator = std::sqrt(v) / root_correction + epsilon;
      store(args.outputs[0].as<T>(), i, shrink * w - step_size * m / denominator);
      store(args.outputs[1].as<T>(), i, m);
      store(args.outputs[2].as<T>(), i, v);
    }
  });
}

Work work(const Signature& s) { return {14 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, double step, Attrs attrs) {
    result.push_back({.inputs = {{w}, {w}, {w}, {w}, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                {},
                                {Fill::Kind::uniform, 0.1, 1},
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({5, 7}, 1, {});
  add({33}, 10, {{"weight_decay", 0.01}});
  add({16, 8}, 1000, {{"weight_decay", 0.1}, {"decoupled", int64_t{1}}, {"beta2", 0.95}});
  return result;
}

}  // namespace

extern const OpDef op_adam_update;
const OpDef op_adam_update{
    .name = "adam_update",
    .summary = "one step of Adam or AdamW",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
};

}  // namespace thimble
