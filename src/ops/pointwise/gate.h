// Activations whose slope is no function of their result: gradients read the argument. They stand
// by themselves (gelu, silu) and gate the other half of a tensor (glu).
#pragma once

#include <cmath>
#include <numbers>

#include "ops/pointwise/unary.h"
#include "ops/reading.h"

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
      return x * (std::erfc(-x * static_cast<Real>(std::numbers::sqrt2 / 2)) / 2);
    case Gate::gelu_tanh:
      break;
  }
  const Real inner = static_cast<Real>(kGeluScale) * (x + static_cast<Real>(kGeluCube) * x * x * x);
  return x * ((1 + std::tanh(inner)) / 2);
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

inline Gate silu_of(std::string_view, const Attrs&) { return Gate::silu; }

// The samples(attrs) of both gelus.
template <class Samples>
std::vector<Sample> of_both_gelus(const Samples& samples) {
  std::vector<Sample> result = samples({});
  for (Sample& sample : samples({{"approximate", "tanh"}})) result.push_back(std::move(sample));
  return result;
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

// Shared by fast kernels of gates that are a sigmoid s of something, in float: slopes at x, and of
// what gelu's approximation is, as (1 + tanh(u)) / 2 = sigmoid(2u).
[[gnu::always_inline]] constexpr float sigmoid_slope(float s) { return s * (1 - s); }
[[gnu::always_inline]] constexpr float silu_slope(float x, float s) {
  return s * (1 + x * (1 - s));
}
inline constexpr float kSigmoidScale = 2 * static_cast<float>(kGeluScale);
inline constexpr float kSigmoidCube = static_cast<float>(kGeluCube);
[[gnu::always_inline]] constexpr float gelu_tanh_argument(float x) {
  return kSigmoidScale * (x + kSigmoidCube * x * x * x);
}
[[gnu::always_inline]] constexpr float gelu_tanh_slope(float x, float s) {
  return s + x * s * (1 - s) * (kSigmoidScale * (1 + 3 * kSigmoidCube * x * x));
}

// Calls body(gate) with what `Gates` has for it: Sigmoid, Silu, Gelu, GeluTanh.
template <class Gates, class Body>
[[gnu::always_inline]] inline decltype(auto) with_gate(Gate gate, const Body& body) {
  switch (gate) {
    case Gate::sigmoid:
      return body(typename Gates::Sigmoid{});
    case Gate::silu:
      return body(typename Gates::Silu{});
    case Gate::gelu:
      return body(typename Gates::Gelu{});
    default:
      return body(typename Gates::GeluTanh{});
  }
}

// The gradient of an op of one tensor that reads the argument.
inline void give_argument_gradient(GradientBuilder& g, std::string_view backward) {
  if (!g.upstream().valid() || !g.wants(0)) return;
  g.give(0, g.build().op(backward, {g.input(0), g.upstream()}, g.attrs()));
}

// The whole record of y = gate(x), of the gate that kGateOf(op, attrs) names; its gradient is the
// op NAME_backward.
template <FixedName kName, int kFlopsPerElement, auto kGateOf>
OpDef gate_op(std::string_view summary, std::vector<Sample> (*samples)()) {
  return {.name = kName.view(),
          .summary = summary,
          .infer =
              [](std::span<const TensorType> inputs, const Attrs& attrs) {
                kGateOf(kName.view(), attrs);
                return infer_unary(kName.view(), inputs);
              },
          .gradient =
              [](GradientBuilder& g) {
                give_argument_gradient(g, std::string(kName.view()) + "_backward");
              },
          .reference =
              [](const KernelArgs& args) {
                const Gate gate = kGateOf(kName.view(), *args.attrs);
                run_unary(args, [gate](auto x) { return gate_value(gate, x); });
              },
          .work = flops_per_output<kFlopsPerElement>,
          .samples = samples,
          .rows = rows_by_element,
          .in_place = {{0, 0}}};
}

// That of its gradient dx = dy * gate'(x).
template <FixedName kName, int kFlopsPerElement, auto kGateOf>
OpDef gate_backward_op(std::string_view summary, std::vector<Sample> (*samples)()) {
  return {.name = kName.view(),
          .summary = summary,
          .infer =
              [](std::span<const TensorType> inputs, const Attrs& attrs) {
                kGateOf(kName.view(), attrs);
                return infer_unary_backward(kName.view(), inputs);
              },
          .reference =
              [](const KernelArgs& args) {
                const Gate gate = kGateOf(kName.view(), *args.attrs);
                run_unary_backward(args,
                                   [gate](auto x, auto dy) { return dy * gate_slope(gate, x); });
              },
          .work = flops_per_output<kFlopsPerElement>,
          .samples = samples,
          .in_place = {{0, 1}, {0, 0}},
          .reading = reads<Reading::curved, 0>,
          .accumulates = 1};
}

}  // namespace thimble
