// silu(x) -> y = x * sigmoid(x).
#include "ops/pointwise/gate.h"

namespace thimble {

extern const OpDef op_silu =
    gate_op<"silu", 13, silu_of>("sigmoid linear unit (swish)", [] { return unary_samples(); });

}  // namespace thimble
