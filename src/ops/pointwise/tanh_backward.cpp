// tanh_backward(y, dy) -> dx = dy * (1 - y * y).
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_tanh_backward = unary_backward_op<"tanh_backward", 3, Reading::curved>(
    "gradient of tanh",
    [] {
      return unary_backward_samples({Fill::Kind::uniform, -1, 1});
    },
    [](auto y, auto dy) { return dy * (1 - y * y); });

}  // namespace thimble
