// sub(a, b) -> y = a - b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

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

}  // namespace

extern const OpDef op_sub = binary_op<"sub", rows_of_sum>("difference of two tensors", gradient,
                                                          [](auto a, auto b) { return a - b; });

}  // namespace thimble
