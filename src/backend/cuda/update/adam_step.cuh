// One element of Adam or AdamW:
//   decoupled (AdamW): w shrinks by lr weight_decay w first; else g gains weight_decay w
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
//   w' = w - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + epsilon)
#pragma once

#include <cmath>

#include "backend/cuda/update/update.cuh"

namespace thimble {

// What of it follows from attrs, and begin() from the step: the same for every element.
struct AdamFactors {
  float keep1, take1, keep2, take2, decay, epsilon;
  float log_keep1, log_keep2;
  bool decoupled;
  float shrink = 1, penalty = 0, step_size = 0, root_correction = 1;

  explicit AdamFactors(const Attrs& attrs) {
    const double beta1 = attrs.real("beta1", 0.9), beta2 = attrs.real("beta2", 0.999);
    keep1 = static_cast<float>(beta1);
    take1 = static_cast<float>(1 - beta1);
    keep2 = static_cast<float>(beta2);
    take2 = static_cast<float>(1 - beta2);
    log_keep1 = static_cast<float>(std::log(beta1));
    log_keep2 = static_cast<float>(std::log(beta2));
    decay = static_cast<float>(attrs.real("weight_decay", 0));
    epsilon = static_cast<float>(attrs.real("epsilon", 1e-8));
    decoupled = attrs.integer("decoupled", 0) != 0;
  }

  // 1 - beta^step is -expm1(step log(beta)): no digits are lost where the power is near 1.
  __device__ void begin(float rate, float number) {
    shrink = decoupled ? 1 - rate * decay : 1;
    penalty = decoupled ? 0 : decay;
    step_size = rate / -expm1f(number * log_keep1);
    root_correction = sqrtf(-expm1f(number * log_keep2));
  }

  __device__ float first(float g, float m) const {
    return sum(product(keep1, m), product(take1, g));
  }
  __device__ float second(float g, float v) const {
    return sum(product(keep2, v), product(product(take2, g), g));
  }
  __device__ float moved(float w, float m, float v) const {
    const float root = sum(ratio(__fsqrt_rn(v), root_correction), epsilon);
    return difference(product(shrink, w), ratio(product(step_size, m), root));
  }
};

// Inputs w, g, m, v, and with kCompensated what the rounding of w has left over; outputs without g.
template <bool kCompensated>
struct AdamElement {
  static constexpr int kTensors = kCompensated ? 5 : 4, kOutputs = kCompensated ? 4 : 3;
  static constexpr int kRest = kCompensated ? 3 : 0;
  AdamFactors factors;

  explicit AdamElement(const Attrs& attrs) : factors(attrs) {}

  __device__ void begin(float rate, float number) { factors.begin(rate, number); }
  __device__ void operator()(const float (&in)[kTensors], float (&out)[kOutputs]) const {
    float w = in[0];
    if constexpr (kCompensated) w = sum(w, in[4]);
    const float g = sum(in[1], product(factors.penalty, w));
    const float m = factors.first(g, in[2]), v = factors.second(g, in[3]);
    out[0] = factors.moved(w, m, v);
    out[1] = m;
    out[2] = v;
  }
};

}  // namespace thimble
