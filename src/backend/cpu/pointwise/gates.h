// The gates of ops/pointwise/gate.h as loops that vectorise: the kind is chosen outside of them.
#pragma once

#include "backend/cpu/pointwise/vector_math.h"
#include "ops/pointwise/gate.h"

namespace thimble {

struct SigmoidGate {
  THIMBLE_INLINE static float value(float x) { return vector_sigmoid(x); }
  THIMBLE_INLINE static float slope(float x) {
    const float s = vector_sigmoid(x);
    return s * (1 - s);
  }
};

struct SiluGate {
  THIMBLE_INLINE static float value(float x) { return x * vector_sigmoid(x); }
  THIMBLE_INLINE static float slope(float x) {
    const float s = vector_sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

// The share of normal numbers below x, within 1e-7 (Abramowitz & Stegun 7.1.26); bell is
// exp(-x^2 / 2).
struct GeluGate {
  THIMBLE_INLINE static float share_below(float x, float bell) {
    const float size = (x < 0 ? -x : x) * 0.70710678f;
    const float t = 1 / (1 + 0.3275911f * size);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const float tail = 0.5f * p * t * bell;
    return x < 0 ? tail : 1 - tail;
  }
  THIMBLE_INLINE static float value(float x) {
    return x * share_below(x, vector_exp(-0.5f * x * x));
  }
  THIMBLE_INLINE static float slope(float x) {
    const float bell = vector_exp(-0.5f * x * x);
    return share_below(x, bell) + x * bell * 0.39894228f;
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2u).
struct GeluTanhGate {
  static constexpr float kScale = 2 * static_cast<float>(kGeluScale);
  static constexpr float kCube = static_cast<float>(kGeluCube);
  THIMBLE_INLINE static float share(float x) {
    return vector_sigmoid(kScale * (x + kCube * x * x * x));
  }
  THIMBLE_INLINE static float value(float x) { return x * share(x); }
  THIMBLE_INLINE static float slope(float x) {
    const float s = share(x);
    return s + x * s * (1 - s) * (kScale * (1 + 3 * kCube * x * x));
  }
};

// Calls body(gate), gate being one of the above.
template <class Body>
THIMBLE_INLINE void with_gate(Gate gate, const Body& body) {
  switch (gate) {
    case Gate::sigmoid:
      return body(SigmoidGate{});
    case Gate::silu:
      return body(SiluGate{});
    case Gate::gelu:
      return body(GeluGate{});
    case Gate::gelu_tanh:
      return body(GeluTanhGate{});
  }
}

}  // namespace thimble
