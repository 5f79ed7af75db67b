// add(a, b) -> y = a + b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_binary("add", inputs);
}

// Reads nothing: without broadcasting the gradient passes straight through.
void gradient(GradientBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (g.wants(i)) {
      g.give(i, sum_to_shape(g.build(), g.upstream(), g.build().shape(g.input(i))));
    }
  }
}

void reference(const KernelArgs& args) {
  run_binary(args, [](auto a, auto b) { return a + b; });
}

}  // namespace

extern const OpDef op_add;
const OpDef op_add{
    .name = "add",
    .summary = "sum of two tensors",
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
