// The activations that bias_act fuses. The slope of each is a function of its result.
#pragma once

#include <cmath>

#include "graph/attrs.h"

namespace thimble {

__device__ inline float sigmoid(float z) { return 1 / (1 + expf(-z)); }

struct NoActivation {
  __device__ float operator()(float z) const { return z; }
  __device__ float gradient(float, float dy) const { return dy; }
};

struct ReluActivation {
  __device__ float operator()(float z) const { return z <= 0 ? 0 : z; }  // keeps NaN
  __device__ float gradient(float y, float dy) const { return dy * (y > 0 ? 1.0f : 0.0f); }
};

struct SigmoidActivation {
  __device__ float operator()(float z) const { return sigmoid(z); }
  __device__ float gradient(float y, float dy) const { return dy * (y * (1 - y)); }
};

struct TanhActivation {
  __device__ float operator()(float z) const { return tanhf(z); }
  __device__ float gradient(float y, float dy) const { return dy * (1 - y * y); }
};

struct LeakyReluActivation {
  float slope;
  __device__ float operator()(float z) const { return z > 0 ? z : slope * z; }
  __device__ float gradient(float y, float dy) const { return dy * (y > 0 ? 1.0f : slope); }
};

// Calls body(activation) with the one that attrs `act` and `slope` name.
template <class Body>
void with_activation(const Attrs& attrs, const Body& body) {
  const std::string_view act = attrs.text("act", "none");
  if (act == "relu") {
    body(ReluActivation{});
  } else if (act == "sigmoid") {
    body(SigmoidActivation{});
  } else if (act == "tanh") {
    body(TanhActivation{});
  } else if (act == "leaky_relu") {
    body(LeakyReluActivation{static_cast<float>(attrs.real("slope", 0.01))});
  } else {
    body(NoActivation{});
  }
}

}  // namespace thimble
