// glu_backward(x [...,2C], dy [...,C]) -> dx [...,2C]; attrs of glu.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/glu_halves.h"
#include "ops/samples.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("glu_backward", inputs, 2);
  gate_of("glu_backward", attrs);
  check_type("glu_backward", "gradient", inputs[1], half_of("glu_backward", inputs[0]));
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  const Gate gate = gate_of("glu_backward", *args.attrs);
  const Rows rows = rows_of(args.inputs[1].type.shape);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    for (int64_t r = 0; r < rows.count; ++r) {
      for (int64_t c = 0; c < rows.columns; ++c) {
        const int64_t at = r * 2 * rows.columns + c;
        const Accumulator<T> a = widen(x[at]), b = widen(x[at + rows.columns]);
        const Accumulator<T> d = widen(dy[r * rows.columns + c]);
        store(dx, at, d * gate_value(gate, b), args.adds_into(0));
        store(dx, at + rows.columns, d * a * gate_slope(gate, b), args.adds_into(0));
      }
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const GluCase& c : glu_cases()) {
    result.push_back({.inputs = {{c.x}, half_of("glu", {c.x})}, .attrs = c.attrs()});
  }
  return and_added(std::move(result));
}

}  // namespace

extern const OpDef op_glu_backward{
    .name = "glu_backward",
    .summary = "gradient of glu",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<15>,
    .samples = samples,
    .in_place = {{0, 0}},
    .reading = reads<Reading::curved, 0>,
    .accumulates = 1,
};

}  // namespace thimble
