// gelu(x) -> y = x * P(normal <= x); attr approximate: none, or tanh (GPT-2's).
#include "ops/pointwise/gate.h"

namespace thimble {

extern const OpDef op_gelu = gate_op<"gelu", 16, gelu_of>("Gaussian error linear unit", [] {
  return of_both_gelus([](const Attrs& attrs) { return unary_samples(attrs); });
});

}  // namespace thimble
