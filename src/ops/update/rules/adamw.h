// AdamW (Loshchilov and Hutter 2019): Adam whose weight decay is decoupled, w first shrinking by
// lr weight_decay w.
#pragma once

#include "ops/update/rules/adam.h"

namespace thimble {

template <class Real>
struct AdamW : Adam<Real> {
  static constexpr UpdateRule kRule = {
      .name = "adamw",
      .summary = "Adam with decoupled weight decay",
      .rate = 1e-3,
      .beta1 = 0.9,
      .beta2 = 0.999,
      .epsilon = 1e-8,
      .weight_decay = 0.01,
      .states = {{.name = "first_moment"},
                 {.name = "second_moment", .is_signed = false, .stochastic = true}},
      .reads_step = true,
      .flops = 14,
  };

  explicit AdamW(const RuleSettings& s) : Adam<Real>(s, true) {}
};

}  // namespace thimble
