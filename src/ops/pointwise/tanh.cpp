// tanh(x) -> y = tanh(x).
#include "ops/pointwise/unary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary("tanh", inputs);
}

void gradient(GradientBuilder& g) { give_unary_gradient(g, "tanh_backward"); }

void reference(const KernelArgs& args) {
  run_unary(args, [](auto x) { return std::tanh(x); });
}

std::vector<Sample> samples() { return unary_samples(); }

}  // namespace

extern const OpDef op_tanh;
const OpDef op_tanh{
    .name = "tanh",
    .summary = "hyperbolic tangent",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = unary_work<12>,
    .samples = samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 0}},
};

}  // namespace thimble
