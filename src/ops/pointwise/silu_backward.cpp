// silu_backward(x, dy) -> dx = dy * silu'(x).
#include "ops/pointwise/gate.h"

namespace thimble {

extern const OpDef op_silu_backward = gate_backward_op<"silu_backward", 15, silu_of>(
    "gradient of silu", [] { return unary_backward_samples({}); });

}  // namespace thimble
