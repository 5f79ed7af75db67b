// The gates of ops/pointwise/gate.h on the device: what each makes of x, and its slope there.
#pragma once

#include "backend/cuda/numbers.cuh"
#include "ops/pointwise/gate.h"

namespace thimble {

// The hardware's exponential: within 2e-6 of the share, at a third of the cost.
__device__ inline float device_sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

struct SigmoidGate {
  __device__ float value(float x) const { return device_sigmoid(x); }
  __device__ float slope(float x) const {
    const float s = device_sigmoid(x);
    return s * (1 - s);
  }
};

struct SiluGate {
  __device__ float value(float x) const { return x * device_sigmoid(x); }
  __device__ float slope(float x) const {
    const float s = device_sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

struct GeluGate {
  __device__ float value(float x) const { return x * normcdff(x); }
  __device__ float slope(float x) const {
    return normcdff(x) + x * __expf(-0.5f * x * x) * 0.39894228f;
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2u).
struct GeluTanhGate {
  static constexpr float kScale = 2 * static_cast<float>(kGeluScale);
  static constexpr float kCube = static_cast<float>(kGeluCube);
  __device__ float share(float x) const { return device_sigmoid(kScale * (x + kCube * x * x * x)); }
  __device__ float value(float x) const { return x * share(x); }
  __device__ float slope(float x) const {
    const float s = share(x);
    return s + x * s * (1 - s) * (kScale * (1 + 3 * kCube * x * x));
  }
};

// Calls body(gate), gate being one of the above.
template <class Body>
decltype(auto) with_gate(Gate gate, const Body& body) {
  switch (gate) {
    case Gate::sigmoid:
      return body(SigmoidGate{});
    case Gate::silu:
      return body(SiluGate{});
    case Gate::gelu:
      return body(GeluGate{});
    default:
      return body(GeluTanhGate{});
  }
}

// As maps of kernels over elements.
template <class G>
struct GateValue {
  G gate;
  __device__ float operator()(float x) const { return gate.value(x); }
};
template <class G>
struct GateGradient {
  G gate;
  __device__ float operator()(float x, float dy) const { return dy * gate.slope(x); }
};

}  // namespace thimble
