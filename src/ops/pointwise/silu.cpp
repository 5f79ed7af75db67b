// silu(x) -> y = x * sigmoid(x).
#include "ops/pointwise/gate.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary("silu", inputs);
}

void gradient(GradientBuilder& g) { give_argument_gradient(g, "silu_backward"); }

void reference(const KernelArgs& args) {
  run_unary(args, [](auto x) { return gate_value(Gate::silu, x); });
}

std::vector<Sample> samples() { return unary_samples(); }

}  // namespace

extern const OpDef op_silu;
const OpDef op_silu{
    .name = "silu",
    .summary = "sigmoid linear unit (swish)",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = unary_work<13>,
    .samples = samples,
    .in_place = {{0, 0}},
};

}  // namespace thimble
