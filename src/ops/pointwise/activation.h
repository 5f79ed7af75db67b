// Activation functions that are fused into other ops, named by their attribute `act`. The slope of
// each is a function of its result, so no gradient needs the pre-activation.
#pragma once

#include <cmath>
#include <string_view>

#include "base/error.h"
#include "graph/attrs.h"

namespace thimble {

struct Activation {
  enum class Kind : uint8_t { none, relu, sigmoid, tanh, leaky_relu } kind = Kind::none;
  double slope = 0;  // leaky_relu: of the negative side

  template <class Real>
  Real operator()(Real z) const {
    switch (kind) {
      case Kind::none:
        return z;
      case Kind::relu:
        return z <= 0 ? Real{0} : z;  // keeps NaN
      case Kind::sigmoid:
        return sigmoid(z);
      case Kind::tanh:
        return std::tanh(z);
      case Kind::leaky_relu:
        return z > 0 ? z : static_cast<Real>(slope) * z;
    }
    return z;
  }

  // The derivative where the result is y.
  template <class Real>
  Real derivative(Real y) const {
    switch (kind) {
      case Kind::none:
        return 1;
      case Kind::relu:
        return y > 0 ? Real{1} : Real{0};
      case Kind::sigmoid:
        return y * (1 - y);
      case Kind::tanh:
        return 1 - y * y;
      case Kind::leaky_relu:
        return y > 0 ? Real{1} : static_cast<Real>(slope);
    }
    return 1;
  }

  template <class Real>
  static Real sigmoid(Real z) {
    return 1 / (1 + std::exp(-z));
  }
};

// Reads attrs `act` (default none) and `slope` (default 0.01).
inline Activation activation_of(std::string_view op, const Attrs& attrs) {
  using Kind = Activation::Kind;
  const std::string_view name = attrs.text("act", "none");
  if (name == "none") return {Kind::none};
  if (name == "relu") return {Kind::relu};
  if (name == "sigmoid") return {Kind::sigmoid};
  if (name == "tanh") return {Kind::tanh};
  if (name != "leaky_relu") user_error("[{}] knows no activation '{}'", op, name);
  const double slope = attrs.real("slope", 0.01);
  // A slope that is not positive would hide the sign of the pre-activation from the gradient.
  if (slope <= 0) user_error("[{}] leaky_relu wants a positive slope, got {}", op, slope);
  return {Kind::leaky_relu, slope};
}

// The same for ops that fuse nothing but relu.
inline bool fuses_relu(std::string_view op, const Attrs& attrs) {
  const std::string_view name = attrs.text("act", "none");
  if (name != "none" && name != "relu") {
    user_error("[{}] fuses 'none' or 'relu', not '{}'", op, name);
  }
  return name == "relu";
}

}  // namespace thimble
