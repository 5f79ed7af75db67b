// Adam (Kingma and Ba 2015), weight decay through the gradient, as PyTorch's:
//   g gains weight_decay w
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
//   w' = w - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + epsilon)
// Moments are f32: squares of gradients would leave fp16's range, and a thousandth of one is less
// than bf16 can add.
#pragma once

#include "ops/update/rule.h"

namespace thimble {

template <class Real>
struct Adam {
  static constexpr UpdateRule kRule = {
      .name = "adam",
      .summary = "Adam",
      .rate = 1e-3,
      .beta1 = 0.9,
      .beta2 = 0.999,
      .epsilon = 1e-8,
      .states = {{.name = "first_moment"},
                 {.name = "second_moment", .is_signed = false, .stochastic = true}},
      .reads_step = true,
      .flops = 14,
  };

  Real keep1, take1, keep2, take2, epsilon, penalty;
  Real shrink, step_size = {}, root_correction = {};
  Setting decay;  // of the weight itself
  Kept first, second;

  // decoupled: the weight shrinks by lr weight_decay w, and the gradient knows nothing of it.
  explicit Adam(const RuleSettings& s, bool decoupled = false)
      : keep1(static_cast<Real>(s.beta1)),
        take1(static_cast<Real>(1 - s.beta1)),
        keep2(static_cast<Real>(s.beta2)),
        take2(static_cast<Real>(1 - s.beta2)),
        epsilon(static_cast<Real>(s.epsilon)),
        penalty(static_cast<Real>(decoupled ? 0.0 : s.weight_decay)),
        shrink(static_cast<Real>(1.0)),
        decay(decoupled ? s.weight_decay : 0.0),
        first(s.beta1),
        second(s.beta2) {}

  template <class Scalar>
  [[gnu::always_inline]] constexpr void begin(Scalar rate, Scalar number) {
    shrink = static_cast<Real>(1 - rate * decay.as<Scalar>());
    step_size = static_cast<Real>(rate / first.filled(number));
    root_correction = static_cast<Real>(std::sqrt(second.filled(number)));
  }
  [[gnu::always_inline]] constexpr Real step(Real w, Real gradient, Real (&state)[2]) const {
    const Real g = gradient + penalty * w;
    const Real m = keep1 * state[0] + take1 * g;
    const Real v = keep2 * state[1] + take2 * g * g;
    state[0] = m;
    state[1] = v;
    return shrink * w - step_size * m / (square_root(v) / root_correction + epsilon);
  }
};

}  // namespace thimble
