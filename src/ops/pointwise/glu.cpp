// glu(x [...,2C] = (a, b) along the last axis) -> y [...,C] = a * act(b); attr act: sigmoid, silu,
// gelu, gelu_tanh.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/glu_halves.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("glu", inputs, 1);
  gate_of("glu", attrs);
  return {half_of("glu", inputs[0])};
}

void gradient(GradientBuilder& g) { give_argument_gradient(g, "glu_backward"); }

void reference(const KernelArgs& args) {
  const Gate gate = gate_of("glu", *args.attrs);
  const Rows rows = rows_of(args.outputs[0].type.shape);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* a = x + r * 2 * rows.columns;
      for (int64_t c = 0; c < rows.columns; ++c) {
        const Accumulator<T> b = widen(a[rows.columns + c]);
        store(y, r * rows.columns + c, widen(a[c]) * gate_value(gate, b));
      }
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const GluCase& c : glu_cases()) {
    result.push_back({.inputs = {{c.x}}, .attrs = c.attrs(), .differentiate = {0}});
  }
  return result;
}

}  // namespace

extern const OpDef op_glu{
    .name = "glu",
    .summary = "one half of a tensor, gated by the other",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_output<14>,
    .samples = samples,
};

}  // namespace thimble
