// gelu(x) -> y = x * P(normal <= x); attr approximate: none, or tanh (GPT-2's).
#include "ops/pointwise/gate.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  gelu_of("gelu", attrs);
  return infer_unary("gelu", inputs);
}

void gradient(GradientBuilder& g) { give_argument_gradient(g, "gelu_backward"); }

void reference(const KernelArgs& args) {
  const Gate gate = gelu_of("gelu", *args.attrs);
  run_unary(args, [gate](auto x) { return gate_value(gate, x); });
}

std::vector<Sample> samples() {
  std::vector<Sample> result = unary_samples();
  for (const Sample& sample : unary_samples({{"approximate", std::string("tanh")}})) {
    result.push_back(sample);
  }
  return result;
}

}  // namespace

extern const OpDef op_gelu;
const OpDef op_gelu{
    .name = "gelu",
    .summary = "Gaussian error linear unit",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = unary_work<16>,
    .samples = samples,
    .in_place = {{0, 0}},
};

}  // namespace thimble
