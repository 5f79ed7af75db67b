// leaky_relu_backward(y, dy) -> dx = y > 0 ? dy : slope * dy; attr slope (default 0.01). The sign
// of y is that of x.
#include "ops/pointwise/unary.h"
#include "ops/reading.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(attrs.real("slope", 0.01) >= 0,
             "[leaky_relu_backward] the slope must not be negative, got {}",
             attrs.real("slope", 0.01));
  return infer_unary_backward("leaky_relu_backward", inputs);
}

void reference(const KernelArgs& args) {
  const double slope = args.attrs->real("slope", 0.01);
  run_unary_backward(args, [slope](auto y, auto dy) {
    return y > 0 ? dy : static_cast<decltype(dy)>(slope) * dy;
  });
}

std::vector<Sample> samples() { return unary_backward_samples({}, {{"slope", 0.1}}); }

}  // namespace

extern const OpDef op_leaky_relu_backward{
    .name = "leaky_relu_backward",
    .summary = "gradient of leaky_relu",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<1>,
    .samples = samples,
    .in_place = {{0, 1}, {0, 0}},
    .reading = reads<Reading::sign, 0>,
    .accumulates = 1,
};

}  // namespace thimble
