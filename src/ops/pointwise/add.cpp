// add(a, b) -> y = a + b, broadcast like numpy.
#include "ops/pointwise/binary.h"

namespace thimble {
namespace {

// Reads nothing: without broadcasting the gradient passes straight through.
void gradient(GradientBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (g.wants(i)) {
      g.give(i, sum_to_shape(g.build(), g.upstream(), g.build().shape(g.input(i))));
    }
  }
}

}  // namespace

extern const OpDef op_add = binary_op<"add", rows_of_sum>("sum of two tensors", gradient,
                                                          [](auto a, auto b) { return a + b; },
                                                          {.sums = 0b11, .commutes = true});

}  // namespace thimble
