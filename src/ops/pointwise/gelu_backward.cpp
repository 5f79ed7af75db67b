// gelu_backward(x, dy) -> dx = dy * gelu'(x); attrs of gelu.
#include "ops/pointwise/gate.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  gelu_of("gelu_backward", attrs);
  return infer_unary_backward("gelu_backward", inputs);
}

void reference(const KernelArgs& args) {
  const Gate gate = gelu_of("gelu_backward", *args.attrs);
  run_unary_backward(args, [gate](auto x, auto dy) { return dy * gate_slope(gate, x); });
}

std::vector<Sample> samples() {
  std::vector<Sample> result = unary_backward_samples({});
  for (const Sample& sample : unary_backward_samples({}, {{"approximate", std::string("tanh")}})) {
    result.push_back(sample);
  }
  return result;
}

}  // namespace

extern const OpDef op_gelu_backward;
const OpDef op_gelu_backward{
    .name = "gelu_backward",
    .summary = "gradient of gelu",
    .infer = infer,
    .reference = reference,
    .work = unary_work<20>,
    .samples = samples,
    .in_place = {{0, 1}, {0, 0}},
    .reading = argument_reading,
    .accumulates = 1,
};

}  // namespace thimble
