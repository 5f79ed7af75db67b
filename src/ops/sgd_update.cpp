// sgd_update(w, g, m, lr f32 [1]) -> (w, m); attrs momentum, nesterov (0), weight_decay (0).
//   d = g + weight_decay w;  m' = momentum m + d;  w' = w - lr (nesterov ? d + momentum m' : m')
// As PyTorch's SGD without dampening. Without momentum there is no m: sgd_plain_update.
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("sgd_update", inputs, 4);
  check_floating("sgd_update", "weight", inputs[0]);
  check_type("sgd_update", "gradient", inputs[1], inputs[0]);
  check_type("sgd_update", "momentum", inputs[2], inputs[0]);
  check_type("sgd_update", "learning rate", inputs[3], {{1}, DType::f32});
  attrs.real("momentum");
  return {inputs[0], inputs[2]};
}

void reference(const KernelArgs& args) {
  const bool nesterov = args.attrs->integer("nesterov", 0) != 0;
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const Real momentum = static_cast<Real>(args.attrs->real("momentum"));
    const Real decay = static_cast<Real>(args.attrs->real("weight_decay", 0));
    const Real lr = static_cast<Real>(*args.inputs[3].as<float>());
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const Real w = widen(args.inputs[0].as<T>()[i]);
      const Real d = widen(args.inputs[1].as<T>()[i]) + decay * w;
      const Real m = momentum * widen(args.inputs[2].as<T>()[i]) + d;
      store(args.outputs[0].as<T>(), i, w - lr * (nesterov ? d + momentum * m : m));
      store(args.outputs[1].as<T>(), i, m);
    }
  });
}

Work work(const Signature& s) { return {6 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{}, {}, {}, {Fill::Kind::uniform, 0.01, 0.1}};
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}, {{5, 7}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"weight_decay", 5e-4}},
       .fills = fills},
      {.inputs = {{{16, 3, 3, 8}}, {{16, 3, 3, 8}}, {{16, 3, 3, 8}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 1e-2}},
       .fills = fills},
  };
}

}  // namespace

extern const OpDef op_sgd_update;
const OpDef op_sgd_update{
    .name = "sgd_update",
    .summary = "one step of stochastic gradient descent with momentum",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}},
};

}  // namespace thimble
