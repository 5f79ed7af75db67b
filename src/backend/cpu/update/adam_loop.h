// The loop of adam_update and, with what rounding left over, of adam_kahan_update.
#pragma once

#include <cmath>

#include "backend/cpu/update/update.h"

namespace thimble {

// Inputs (w, g, m, v, [c,] lr, step, ...), outputs (w, m, v[, c]).
template <bool kKahan>
THIMBLE_INLINE void adam_range(const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr size_t kRate = kKahan ? 5 : 4;
  const double beta1 = args.attrs->real("beta1", 0.9), beta2 = args.attrs->real("beta2", 0.999);
  const double rate = static_cast<double>(*args.inputs[kRate].as<const float>());
  const double step = static_cast<double>(*args.inputs[kRate + 1].as<const float>());
  const double decay = args.attrs->real("weight_decay", 0);
  const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
  const auto keep1 = static_cast<float>(beta1), take1 = static_cast<float>(1 - beta1);
  const auto keep2 = static_cast<float>(beta2), take2 = static_cast<float>(1 - beta2);
  const auto shrink = static_cast<float>(decoupled ? 1 - rate * decay : 1.0);
  const auto penalty = static_cast<float>(decoupled ? 0.0 : decay);
  const auto step_size = static_cast<float>(rate / (1 - std::pow(beta1, step)));
  const auto correction = static_cast<float>(std::sqrt(1 - std::pow(beta2, step)));
  const auto epsilon = static_cast<float>(args.attrs->real("epsilon", 1e-8));
  const float factor = gradient_factor(args, kRate + 2);
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* m_before = args.inputs[2].as<const float>();
  const float* v_before = args.inputs[3].as<const float>();
  const float* c_before = args.inputs[kRate - 1].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* m_after = args.outputs[1].as<float>();
  float* v_after = args.outputs[2].as<float>();
  float* c_after = args.outputs.back().as<float>();
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float w = kKahan ? w_before[i] + c_before[i] : w_before[i];
    const float g = gradient[i] * factor + penalty * w;
    const float m = keep1 * m_before[i] + take1 * g;
    const float v = keep2 * v_before[i] + take2 * g * g;
    const float after = shrink * w - step_size * m / (__builtin_sqrtf(v) / correction + epsilon);
    w_after[i] = after;
    m_after[i] = m;
    v_after[i] = v;
    if (kKahan) c_after[i] = after;
  }
}

}  // namespace thimble
