// sigmoid(x) -> y = 1 / (1 + exp(-x)).
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_sigmoid =
    unary_op<"sigmoid", 12>("logistic function", [](auto x) { return 1 / (1 + std::exp(-x)); });

}  // namespace thimble
