// mul(a, b) -> y = a * b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_binary("mul", inputs);
}

// The gradient of one factor reads the other only.
void gradient(GradientBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (!g.wants(i)) continue;
    const ValueId product = g.build().op("mul", {g.upstream(), g.input(1 - i)});
    g.give(i, sum_to_shape(g.build(), product, g.build().shape(g.input(i))));
  }
}

void reference(const KernelArgs& args) {
  run_binary(args, [](auto a, auto b) { return a * b; });
}

}  // namespace

extern const OpDef op_mul;
const OpDef op_mul{
    .name = "mul",
    .summary = "product of two tensors, element by element",
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
