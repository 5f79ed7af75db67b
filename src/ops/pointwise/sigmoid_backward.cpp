// sigmoid_backward(y, dy) -> dx = dy * y * (1 - y).
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_sigmoid_backward = unary_backward_op<"sigmoid_backward", 3, Reading::curved>(
    "gradient of sigmoid",
    [] {
      return unary_backward_samples({Fill::Kind::uniform, 0, 1});
    },
    [](auto y, auto dy) { return dy * y * (1 - y); });

}  // namespace thimble
