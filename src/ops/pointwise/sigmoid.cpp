// sigmoid(x) -> y = 1 / (1 + exp(-x)).
#include "ops/pointwise/unary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary("sigmoid", inputs);
}

void gradient(GradientBuilder& g) { give_unary_gradient(g, "sigmoid_backward"); }

void reference(const KernelArgs& args) {
  run_unary(args, [](auto x) { return 1 / (1 + std::exp(-x)); });
}

std::vector<Sample> samples() { return unary_samples(); }

}  // namespace

extern const OpDef op_sigmoid;
const OpDef op_sigmoid{
    .name = "sigmoid",
    .summary = "logistic function",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = unary_work<12>,
    .samples = samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 0}},
};

}  // namespace thimble
