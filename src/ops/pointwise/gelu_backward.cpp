// gelu_backward(x, dy) -> dx = dy * gelu'(x); attrs of gelu.
#include "ops/pointwise/gate.h"

namespace thimble {

extern const OpDef op_gelu_backward =
    gate_backward_op<"gelu_backward", 20, gelu_of>("gradient of gelu", [] {
      return of_both_gelus([](const Attrs& attrs) { return unary_backward_samples({}, attrs); });
    });

}  // namespace thimble
