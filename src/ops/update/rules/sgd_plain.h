// Gradient descent without momentum: w' = w - lr (g + weight_decay w). It stands in for sgd and
// nesterov without momentum, and ends a step whose gradients were folded into the momentum.
#pragma once

#include "ops/update/rule.h"

namespace thimble {

template <class Real>
struct SgdPlain {
  static constexpr UpdateRule kRule = {
      .name = "sgd_plain",
      .summary = "stochastic gradient descent without momentum",
      .flops = 4,
      .internal = true,
  };

  Real decay;
  Real rate = {};

  explicit SgdPlain(const RuleSettings& s) : decay(static_cast<Real>(s.weight_decay)) {}

  template <class Scalar>
  [[gnu::always_inline]] constexpr void begin(Scalar learning_rate, Scalar) {
    rate = static_cast<Real>(learning_rate);
  }
  [[gnu::always_inline]] constexpr Real step(Real w, Real g, Real (&)[1]) const {
    return w - rate * (g + decay * w);
  }
};

}  // namespace thimble
