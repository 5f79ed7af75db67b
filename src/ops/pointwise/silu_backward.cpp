// silu_backward(x, dy) -> dx = dy * silu'(x).
#include "ops/pointwise/gate.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary_backward("silu_backward", inputs);
}

void reference(const KernelArgs& args) {
  run_unary_backward(args, [](auto x, auto dy) { return dy * gate_slope(Gate::silu, x); });
}

std::vector<Sample> samples() { return unary_backward_samples({}); }

}  // namespace

extern const OpDef op_silu_backward;
const OpDef op_silu_backward{
    .name = "silu_backward",
    .summary = "gradient of silu",
    .infer = infer,
    .reference = reference,
    .work = unary_work<15>,
    .samples = samples,
    .in_place = {{0, 1}, {0, 0}},
    .reading = argument_reading,
    .accumulates = 1,
};

}  // namespace thimble
