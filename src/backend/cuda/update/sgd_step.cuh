// One element of stochastic gradient descent with momentum:
//   d = g + weight_decay w;  m' = momentum m + d;  w' = w - lr (nesterov ? d + momentum m' : m')
#pragma once

#include "backend/cuda/update/update.cuh"

namespace thimble {

// Inputs w, g, m, and with kCompensated what the rounding of w has left over; outputs without g.
template <bool kCompensated>
struct SgdElement {
  static constexpr int kTensors = kCompensated ? 4 : 3, kOutputs = kCompensated ? 3 : 2;
  static constexpr int kRest = kCompensated ? 2 : 0;
  float momentum, decay;
  bool nesterov;
  float rate = 0;

  explicit SgdElement(const Attrs& attrs)
      : momentum(static_cast<float>(attrs.real("momentum"))),
        decay(static_cast<float>(attrs.real("weight_decay", 0))),
        nesterov(attrs.integer("nesterov", 0) != 0) {}

  __device__ void begin(float learning_rate, float) { rate = learning_rate; }
  __device__ void operator()(const float (&in)[kTensors], float (&out)[kOutputs]) const {
    float w = in[0];
    if constexpr (kCompensated) w = sum(w, in[3]);
    const float d = sum(in[1], product(decay, w));
    const float m = sum(product(momentum, in[2]), d);
    out[0] = difference(w, product(rate, nesterov ? sum(d, product(momentum, m)) : m));
    out[1] = m;
  }
};

// Without momentum: w' = w - lr (g + weight_decay w).
template <bool kCompensated>
struct SgdPlainElement {
  static constexpr int kTensors = kCompensated ? 3 : 2, kOutputs = kCompensated ? 2 : 1;
  static constexpr int kRest = kCompensated ? 1 : 0;
  float decay;
  float rate = 0;

  explicit SgdPlainElement(const Attrs& attrs)
      : decay(static_cast<float>(attrs.real("weight_decay", 0))) {}

  __device__ void begin(float learning_rate, float) { rate = learning_rate; }
  __device__ void operator()(const float (&in)[kTensors], float (&out)[kOutputs]) const {
    float w = in[0];
    if constexpr (kCompensated) w = sum(w, in[2]);
    out[0] = difference(w, product(rate, sum(in[1], product(decay, w))));
  }
};

}  // namespace thimble
