// sigmoid_backward(y, dy) -> dx = dy * y * (1 - y).
#include "ops/pointwise/unary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary_backward("sigmoid_backward", inputs);
}

void reference(const KernelArgs& args) {
  run_unary_backward(args, [](auto y, auto dy) { return dy * y * (1 - y); });
}

std::vector<Sample> samples() { return unary_backward_samples({Fill::Kind::uniform, 0, 1}); }

}  // namespace

extern const OpDef op_sigmoid_backward;
const OpDef op_sigmoid_backward{
    .name = "sigmoid_backward",
    .summary = "gradient of sigmoid",
    .infer = infer,
    .reference = reference,
    .work = unary_work<3>,
    .samples = samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 1}, {0, 0}},
    .reading = [](const Attrs&,
                  size_t input) { return input == 0 ? Reading::curved : Reading::linear; },
    .accumulates = 1,
};

}  // namespace thimble
