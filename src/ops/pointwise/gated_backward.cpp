// gated_backward(a, b, dy) -> (da, db); attrs of gated.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/gated_cases.h"
#include "ops/samples.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("gated_backward", inputs, 3);
  check_floating("gated_backward", inputs[0]);
  check_same_type("gated_backward", inputs[0], inputs[1]);
  check_same_type("gated_backward", inputs[0], inputs[2]);
  gate_of("gated_backward", attrs);
  return {inputs[0], inputs[0]};
}

void reference(const KernelArgs& args) {
  const Gate gate = gate_of("gated_backward", *args.attrs);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T *a = args.inputs[0].as<T>(), *b = args.inputs[1].as<T>(), *dy = args.inputs[2].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      const Accumulator<T> at_a = widen(a[i]), at_b = widen(b[i]), d = widen(dy[i]);
      store(args.outputs[0].as<T>(), i, d * at_b * gate_slope(gate, at_a), args.adds_into(0));
      store(args.outputs[1].as<T>(), i, d * gate_value(gate, at_a), args.adds_into(1));
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const GatedCase& c : gated_cases()) {
    result.push_back({.inputs = {{c.shape}, {c.shape}, {c.shape}}, .attrs = c.attrs()});
  }
  result = and_added(std::move(result), 0b01);
  return and_added(std::move(result), 0b11, 1);
}

// a under the gate's slope, b as it is.
Reading reading(const Attrs&, size_t input) {
  return input == 0 ? Reading::curved : Reading::linear;
}

}  // namespace

extern const OpDef op_gated_backward{
    .name = "gated_backward",
    .summary = "gradient of gated",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<16>,
    .samples = samples,
    .in_place = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}},
    .reading = reading,
    .accumulates = 0b11,
};

}  // namespace thimble
