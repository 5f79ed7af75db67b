// The loop of sgd_update and, with what rounding left over, of sgd_kahan_update.
#pragma once

#include "backend/cpu/update/update.h"

namespace thimble {

// Inputs (w, g, m, [c,] lr, ...), outputs (w, m[, c]).
template <bool kKahan>
THIMBLE_INLINE void sgd_range(const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr size_t kRate = kKahan ? 4 : 3;
  const auto momentum = static_cast<float>(args.attrs->real("momentum"));
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  const bool nesterov = args.attrs->integer("nesterov", 0) != 0;
  const float rate = *args.inputs[kRate].as<const float>();
  const float factor = gradient_factor(args, kRate + 1);
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* m_before = args.inputs[2].as<const float>();
  const float* c_before = args.inputs[kRate - 1].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* m_after = args.outputs[1].as<float>();
  float* c_after = args.outputs.back().as<float>();
  // The step is along share_d * d + share_m * m.
  const float share_d = nesterov ? 1.0f : 0.0f, share_m = nesterov ? momentum : 1.0f;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float w = kKahan ? w_before[i] + c_before[i] : w_before[i];
    const float d = gradient[i] * factor + decay * w;
    const float m = momentum * m_before[i] + d;
    const float after = w - rate * (share_d * d + share_m * m);
    w_after[i] = after;
    m_after[i] = m;
    if (kKahan) c_after[i] = after;
  }
}

}  // namespace thimble
