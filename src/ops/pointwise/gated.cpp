// gated(a, b) -> y = act(a) * b, of one shape; attr act: sigmoid, silu, gelu, gelu_tanh. As glu,
// but of two tensors in place of two halves.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/gated_cases.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("gated", inputs, 2);
  check_floating("gated", inputs[0]);
  check_same_type("gated", inputs[0], inputs[1]);
  gate_of("gated", attrs);
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  g.give_each(g.build().apply("gated_backward", {g.input(0), g.input(1), g.upstream()}, g.attrs()));
}

void reference(const KernelArgs& args) {
  const Gate gate = gate_of("gated", *args.attrs);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T *a = args.inputs[0].as<T>(), *b = args.inputs[1].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      store(args.outputs[0].as<T>(), i, gate_value(gate, widen(a[i])) * widen(b[i]));
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const GatedCase& c : gated_cases()) {
    result.push_back(
        {.inputs = {{c.shape}, {c.shape}}, .attrs = c.attrs(), .differentiate = {0, 1}});
  }
  return result;
}

}  // namespace

extern const OpDef op_gated{
    .name = "gated",
    .summary = "one tensor, gated by another",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_output<14>,
    .samples = samples,
    .rows = rows_by_element,
    .in_place = {{0, 0}, {0, 1}},
};

}  // namespace thimble
