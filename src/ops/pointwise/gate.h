// Activations whose slope is no function of their result: gradients read the argument. They stand
// by themselves (gelu, silu) and gate the other half of a tensor (glu).
#pragma once

#include <cmath>
#include <numbers>

#include "ops/pointwise/unary.h"

namespace thimble {

enum class Gate : uint8_t { sigmoid, silu, gelu, gelu_tanh };

// The two constants of gelu's approximation: tanh(kGeluScale * (x + kGeluCube * x^3)).
inline constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCube = 0.044715;

template <class Real>
Real gate_value(Gate gate, Real x) {
  switch (gate) {
    case Gate::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Gate::silu:
      return x / (1 + std::exp(-x));
    case Gate::gelu:
      return x * std::erfc(-x * static_cast<Real>(std::numbers::sqrt2 / 2)) / 2;
    case Gate::gelu_tanh:
      break;
  }
  const Real inner = static_cast<Real>(kGeluScale) * (x + static_cast<Real>(kGeluCube) * x * x * x);
  return x * (1 + std::tanh(inner)) / 2;
}

template <class Real>
Real gate_slope(Gate gate, Real x) {
  switch (gate) {
    case Gate::sigmoid:
    case Gate::silu: {
      const Real s = 1 / (1 + std::exp(-x));
      return gate == Gate::sigmoid ? s * (1 - s) : s * (1 + x * (1 - s));
    }
    case Gate::gelu:
      return std::erfc(-x * static_cast<Real>(std::numbers::sqrt2 / 2)) / 2 +
             x * std::exp(-x * x / 2) *
                 static_cast<Real>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    case Gate::gelu_tanh:
      break;
  }
  const auto scale = static_cast<Real>(kGeluScale), cube = static_cast<Real>(kGeluCube);
  const Real t = std::tanh(scale * (x + cube * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) / 2 * scale * (1 + 3 * cube * x * x);
}

// Which gelu the attribute `approximate` names.
inline Gate gelu_of(std::string_view op, const Attrs& attrs) {
  const std::string_view name = attrs.text("approximate", "none");
  if (name == "none") return Gate::gelu;
  if (name != "tanh") user_error("[{}] approximates by 'none' or 'tanh', not '{}'", op, name);
  return Gate::gelu_tanh;
}

// Which gate the attribute `act` names.
inline Gate gate_of(std::string_view op, const Attrs& attrs) {
  const std::string_view name = attrs.text("act", "sigmoid");
  if (name == "sigmoid") return Gate::sigmoid;
  if (name == "silu") return Gate::silu;
  if (name == "gelu") return Gate::gelu;
  if (name != "gelu_tanh") user_error("[{}] knows no gate '{}'", op, name);
  return Gate::gelu_tanh;
}

// The gradient of an op of one tensor that reads the argument.
inline void give_argument_gradient(GradientBuilder& g, std::string_view backward) {
  if (!g.upstream().valid() || !g.wants(0)) return;
  g.give(0, g.build().op(backward, {g.input(0), g.upstream()}, g.attrs()));
}

inline Reading argument_reading(const Attrs&, size_t input) {
  return input == 0 ? Reading::curved : Reading::linear;
}

}  // namespace thimble
