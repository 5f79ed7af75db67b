// tanh(x) -> y.
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_tanh =
    unary_op<"tanh", 12>("hyperbolic tangent", [](auto x) { return std::tanh(x); });

}  // namespace thimble
