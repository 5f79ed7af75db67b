// The gates of ops/pointwise/gate.h as loops that vectorise: the kind is chosen outside of them.
#pragma once

#include "backend/cpu/pointwise/vector_math.h"
#include "ops/pointwise/gate.h"

namespace thimble {

struct CpuGates {
  struct Sigmoid {
    THIMBLE_INLINE static float value(float x) { return vector_sigmoid(x); }
    THIMBLE_INLINE static float slope(float x) { return sigmoid_slope(vector_sigmoid(x)); }
  };

  struct Silu {
    THIMBLE_INLINE static float value(float x) { return x * vector_sigmoid(x); }
    THIMBLE_INLINE static float slope(float x) { return silu_slope(x, vector_sigmoid(x)); }
  };

  // The share of normal numbers below x, within 1e-7 (Abramowitz & Stegun 7.1.26); bell is
  // exp(-x^2 / 2).
  struct Gelu {
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

  struct GeluTanh {
    THIMBLE_INLINE static float share(float x) { return vector_sigmoid(gelu_tanh_argument(x)); }
    THIMBLE_INLINE static float value(float x) { return x * share(x); }
    THIMBLE_INLINE static float slope(float x) { return gelu_tanh_slope(x, share(x)); }
  };
};

}  // namespace thimble
