// Lion (Chen et al. 2023): steps of one length along the sign of a momentum that looks ahead,
// weight decay decoupled:
//   c = beta1 m + (1 - beta1) g;  m' = beta2 m + (1 - beta2) g
//   w' = w - lr (sign(c) + weight_decay w)
#pragma once

#include "ops/update/rule.h"

namespace thimble {

template <class Real>
struct Lion {
  static constexpr UpdateRule kRule = {
      .name = "lion",
      .summary = "Lion, along the sign of its momentum",
      .rate = 1e-4,
      .beta1 = 0.9,
      .beta2 = 0.99,
      .states = {{.name = "momentum", .stochastic = true}},  // moves by a hundredth
      .flops = 10,
  };

  Real keep1, take1, keep2, take2;
  Real rate = {}, shrink = {};
  Setting decay;

  explicit Lion(const RuleSettings& s)
      : keep1(static_cast<Real>(s.beta1)),
        take1(static_cast<Real>(1 - s.beta1)),
        keep2(static_cast<Real>(s.beta2)),
        take2(static_cast<Real>(1 - s.beta2)),
        decay(s.weight_decay) {}

  template <class Scalar>
  [[gnu::always_inline]] constexpr void begin(Scalar learning_rate, Scalar) {
    rate = static_cast<Real>(learning_rate);
    shrink = static_cast<Real>(1 - learning_rate * decay.as<Scalar>());
  }
  [[gnu::always_inline]] constexpr Real step(Real w, Real g, Real (&state)[1]) const {
    const Real zero = static_cast<Real>(0.0);
    const Real c = keep1 * state[0] + take1 * g;
    const Real along = c > zero ? rate : c < zero ? -rate : rate * c;  // 0, or not a number
    state[0] = keep2 * state[0] + take2 * g;
    return shrink * w - along;
  }
};

}  // namespace thimble
