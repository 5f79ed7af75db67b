// relu_backward(y, dy) -> dx = y > 0 ? dy : 0.
#include "ops/pointwise/unary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary_backward("relu_backward", inputs);
}

void reference(const KernelArgs& args) {
  run_unary_backward(args, [](auto y, auto dy) { return y > 0 ? dy : 0; });
}

std::vector<Sample> samples() { return unary_backward_samples({}); }

}  // namespace

extern const OpDef op_relu_backward;
const OpDef op_relu_backward{
    .name = "relu_backward",
    .summary = "gradient of relu",
    .infer = infer,
    .reference = reference,
    .work = unary_work<1>,
    .samples = samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 1}, {0, 0}},
    .reading = [](const Attrs&,
                  size_t input) { return input == 0 ? Reading::sign : Reading::linear; },
    .accumulates = 1,
};

}  // namespace thimble
