// One element of stochastic gradient descent with momentum, as sgd_update and sgd_kahan_update do
// it:
//   d = g + weight_decay w;  m' = momentum m + d;  w' = w - lr (nesterov ? d + momentum m' : m')
#pragma once

#include "ops/update/update.h"

namespace thimble {

template <class Real>
struct SgdStep {
  Real momentum, decay, rate;
  bool nesterov;

  SgdStep(const UpdateElements<Real>& elements, const Attrs& attrs, size_t rate_input)
      : momentum(elements.attr("momentum", 0)),
        decay(elements.attr("weight_decay", 0)),
        rate(elements.scalar(rate_input)),
        nesterov(attrs.integer("nesterov", 0) != 0) {}

  struct After {
    Real w, m;
  };
  After operator()(Real w, Real g, Real m_before) const {
    const Real d = g + decay * w;
    const Real m = momentum * m_before + d;
    return {w - rate * (nesterov ? d + momentum * m : m), m};
  }
};

}  // namespace thimble
