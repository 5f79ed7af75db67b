// mul(a, b) -> y = a * b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

// The gradient of one factor reads the other only.
void gradient(GradientBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (!g.wants(i)) continue;
    const ValueId product = g.build().op("mul", {g.upstream(), g.input(1 - i)});
    g.give(i, sum_to_shape(g.build(), product, g.build().shape(g.input(i))));
  }
}

}  // namespace

extern const OpDef op_mul =
    binary_op<"mul", rows_of_product>("product of two tensors, element by element", gradient,
                                      [](auto a, auto b) { return a * b; }, {.commutes = true});

}  // namespace thimble
