// relu_backward(y, dy) -> dx = y > 0 ? dy : 0.
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_relu_backward = unary_backward_op<"relu_backward", 1, Reading::sign>(
    "gradient of relu", [] { return unary_backward_samples({}); },
    [](auto y, auto dy) { return y > 0 ? dy : 0; });

}  // namespace thimble
