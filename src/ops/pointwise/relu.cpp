// relu(x) -> y = max(x, 0).
#include "ops/pointwise/unary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary("relu", inputs);
}

void gradient(GradientBuilder& g) { give_unary_gradient(g, "relu_backward"); }

// Written so that a NaN stays one: a diverged run must not look healthy.
void reference(const KernelArgs& args) {
  run_unary(args, [](auto x) { return x < 0 ? 0 : x; });
}

std::vector<Sample> samples() { return unary_samples(); }

}  // namespace

extern const OpDef op_relu;
const OpDef op_relu{
    .name = "relu",
    .summary = "rectifier",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = unary_work<1>,
    .samples = samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 0}},
    .nonnegative = [](const Attrs&) { return true; },
};

}  // namespace thimble
