// relu(x) -> y = max(x, 0), written so that a NaN stays one: a diverged run must not look healthy.
#include "ops/pointwise/unary.h"

namespace thimble {

extern const OpDef op_relu = [] {
  OpDef op = unary_op<"relu", 1>("rectifier", [](auto x) { return x < 0 ? 0 : x; });
  op.nonnegative = [](const Attrs&) { return true; };
  return op;
}();

}  // namespace thimble
