// sub(a, b) -> y = a - b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_binary("sub", inputs);
}

// The sum over repeated axes comes before the sign, on the smaller tensor.
void gradient(GradientBuilder& g) {
  if (g.wants(0)) {
    g.give(0, sum_to_shape(g.build(), g.upstream(), g.build().shape(g.input(0))));
  }
  if (g.wants(1)) {
    const ValueId sum = sum_to_shape(g.build(), g.upstream(), g.build().shape(g.input(1)));
    g.give(1, g.build().op("scale", {sum}, {{"factor", -1.0}}));
  }
}

void reference(const KernelArgs& args) {
  run_binary(args, [](auto a, auto b) { return a - b; });
}

}  // namespace

extern const OpDef op_sub;
const OpDef op_sub{
    .name = "sub",
    .summary = "difference of two tensors",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = binary_work,
    .samples = binary_samples,
    .recompute = Recompute::cheap,
    .in_place = {{0, 0}, {0, 1}},
    .accumulates = 1,
};

}  // namespace thimble
