// Stochastic gradient descent with momentum (heavy ball), as PyTorch's without dampening:
//   d = g + weight_decay w;  m' = momentum m + d;  w' = w - lr m'
#pragma once

#include "ops/update/rule.h"

namespace thimble {

template <class Real>
struct Sgd {
  static constexpr UpdateRule kRule = {
      .name = "sgd",
      .summary = "stochastic gradient descent with momentum, a heavy ball",
      .momentum = 0.9,
      .states = {{.name = "momentum", .like_gradient = true}},
      .flops = 6,
      .folds = true,
      .without_momentum = "sgd_plain",
  };

  Real momentum, decay;
  Real share_d, share_m;  // the step is along share_d d + share_m m'
  Real rate = {};

  explicit Sgd(const RuleSettings& s, bool looks_ahead = false)
      : momentum(static_cast<Real>(s.momentum)),
        decay(static_cast<Real>(s.weight_decay)),
        share_d(static_cast<Real>(looks_ahead ? 1.0 : 0.0)),
        share_m(static_cast<Real>(looks_ahead ? s.momentum : 1.0)) {}

  template <class Scalar>
  [[gnu::always_inline]] constexpr void begin(Scalar learning_rate, Scalar) {
    rate = static_cast<Real>(learning_rate);
  }
  [[gnu::always_inline]] constexpr Real step(Real w, Real g, Real (&state)[1]) const {
    const Real d = g + decay * w;
    const Real m = momentum * state[0] + d;
    state[0] = m;
    return w - rate * (share_d * d + share_m * m);
  }
};

}  // namespace thimble
