// sgd_plain_update(w, g, lr f32 [1]) -> w - lr (g + weight_decay w); attr weight_decay (0).
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("sgd_plain_update", inputs, 3);
  check_floating("sgd_plain_update", "weight", inputs[0]);
  check_type("sgd_plain_update", "gradient", inputs[1], inputs[0]);
  check_type("sgd_plain_update", "learning rate", inputs[2], {{1}, DType::f32});
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const Real decay = static_cast<Real>(args.attrs->real("weight_decay", 0));
    const Real lr = static_cast<Real>(*args.inputs[2].as<float>());
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const Real w = widen(args.inputs[0].as<T>()[i]);
      store(args.outputs[0].as<T>(), i, w - lr * (widen(args.inputs[1].as<T>()[i]) + decay * w));
    }
  });
}

Work work(const Signature& s) { return {4 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const std::vector<Fill> fills = {{}, {}, {Fill::Kind::uniform, 0.01, 0.1}};
  return {
      {.inputs = {{{5, 7}}, {{5, 7}}, {{1}}}, .fills = fills},
      {.inputs = {{{64}}, {{64}}, {{1}}}, .attrs = {{"weight_decay", 1e-2}}, .fills = fills},
  };
}

}  // namespace

extern const OpDef op_sgd_plain_update;
const OpDef op_sgd_plain_update{
    .name = "sgd_plain_update",
    .summary = "one step of stochastic gradient descent without momentum",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
