// The loop of sgd_plain_update and, with what rounding left over, of sgd_plain_kahan_update.
#pragma once

#include "backend/cpu/update/update.h"

namespace thimble {

// Inputs (w, g, [c,] lr, ...), outputs (w[, c]).
template <bool kKahan>
THIMBLE_INLINE void sgd_plain_range(const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr size_t kRate = kKahan ? 3 : 2;
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  const float rate = *args.inputs[kRate].as<const float>();
  const float factor = gradient_factor(args, kRate + 1);
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* c_before = args.inputs[kRate - 1].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* c_after = args.outputs.back().as<float>();
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float w = kKahan ? w_before[i] + c_before[i] : w_before[i];
    const float after = w - rate * (gradient[i] * factor + decay * w);
    w_after[i] = after;
    if (kKahan) c_after[i] = after;
  }
}

}  // namespace thimble
