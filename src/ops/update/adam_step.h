// One element of Adam or AdamW, as adam_update and adam_kahan_update do it:
//   decoupled (AdamW): w shrinks by lr weight_decay w first; else g gains weight_decay w
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
//   w' = w - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + epsilon)
// As PyTorch's. step counts from 1.
#pragma once

#include <cmath>

#include "ops/update/update.h"

namespace thimble {

template <class Real>
struct AdamStep {
  Real keep1, take1, keep2, take2, shrink, penalty, step_size, root_correction, epsilon;

  // Inputs `rate_input` and the one behind it are lr and step.
  AdamStep(const UpdateElements<Real>& elements, const KernelArgs& args, size_t rate_input) {
    const double beta1 = args.attrs->real("beta1", 0.9), beta2 = args.attrs->real("beta2", 0.999);
    const double rate = static_cast<double>(*args.inputs[rate_input].template as<float>());
    const double step = static_cast<double>(*args.inputs[rate_input + 1].template as<float>());
    const double decay = args.attrs->real("weight_decay", 0);
    const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
    keep1 = static_cast<Real>(beta1), take1 = static_cast<Real>(1 - beta1);
    keep2 = static_cast<Real>(beta2), take2 = static_cast<Real>(1 - beta2);
    shrink = decoupled ? static_cast<Real>(1 - rate * decay) : Real{1};
    penalty = decoupled ? Real{0} : static_cast<Real>(decay);
    step_size = static_cast<Real>(rate / (1 - std::pow(beta1, step)));
    root_correction = static_cast<Real>(std::sqrt(1 - std::pow(beta2, step)));
    epsilon = elements.attr("epsilon", 1e-8);
  }

  struct After {
    Real w, m, v;
  };
  After operator()(Real w, Real gradient, Real m_before, Real v_before) const {
    const Real g = gradient + penalty * w;
    const Real m = keep1 * m_before + take1 * g;
    const Real v = keep2 * v_before + take2 * g * g;
    return {shrink * w - step_size * m / (std::sqrt(v) / root_correction + epsilon), m, v};
  }
};

}  // namespace thimble
