// Nesterov's momentum: as sgd, but w' = w - lr (d + momentum m').
#pragma once

#include "ops/update/rules/sgd.h"

namespace thimble {

template <class Real>
struct Nesterov : Sgd<Real> {
  static constexpr UpdateRule kRule = {
      .name = "nesterov",
      .summary = "stochastic gradient descent with Nesterov's momentum",
      .momentum = 0.9,
      .states = {{.name = "momentum", .like_gradient = true}},
      .flops = 6,
      .without_momentum = "sgd_plain",
  };

  explicit Nesterov(const RuleSettings& s) : Sgd<Real>(s, true) {}
};

}  // namespace thimble
