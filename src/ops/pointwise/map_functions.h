// Functions of one number that ops, CPU and GPU kernels of `map` share: what each makes of x, and
// its slope there, in the arithmetic of x. A function is a struct with one or two settings; the
// table below is the only list.
#pragma once

#include <cmath>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "graph/attrs.h"

namespace thimble {

struct MapSettings {
  double a = 0, b = 0;
};

namespace maps {

constexpr auto sigmoid_of(auto x) { return 1 / (1 + std::exp(-x)); }
// log(1 + exp(x)), for x of any size.
constexpr auto softplus_of(auto x) {
  return (x > 0 ? x : decltype(x){0}) + std::log1p(std::exp(x > 0 ? -x : x));
}

struct Exp {
  constexpr auto value(auto x) const { return std::exp(x); }
  constexpr auto slope(auto x) const { return std::exp(x); }
};
struct Log {
  constexpr auto value(auto x) const { return std::log(x); }
  constexpr auto slope(auto x) const { return 1 / x; }
};
// Of shares, whose logarithm counts only where there is one: x log x is 0 at 0.
struct LogOfShare {
  constexpr auto value(auto x) const { return x > 0 ? std::log(x) : decltype(x){0}; }
  constexpr auto slope(auto x) const { return x > 0 ? 1 / x : decltype(x){0}; }
};
struct Log1p {
  constexpr auto value(auto x) const { return std::log1p(x); }
  constexpr auto slope(auto x) const { return 1 / (1 + x); }
};
struct Expm1 {
  constexpr auto value(auto x) const { return std::expm1(x); }
  constexpr auto slope(auto x) const { return std::exp(x); }
};
struct Sqrt {
  constexpr auto value(auto x) const { return std::sqrt(x); }
  constexpr auto slope(auto x) const { return decltype(x){0.5} / std::sqrt(x); }
};
struct Rsqrt {
  constexpr auto value(auto x) const { return 1 / std::sqrt(x); }
  constexpr auto slope(auto x) const { return decltype(x){-0.5} / (x * std::sqrt(x)); }
};
struct Reciprocal {
  constexpr auto value(auto x) const { return 1 / x; }
  constexpr auto slope(auto x) const { return -1 / (x * x); }
};
struct Abs {
  constexpr auto value(auto x) const { return x < 0 ? -x : x; }
  constexpr float slope(auto x) const { return x < 0 ? -1.0f : x > 0 ? 1.0f : 0.0f; }
};
struct Square {
  constexpr auto value(auto x) const { return x * x; }
  constexpr auto slope(auto x) const { return 2 * x; }
};
struct Erf {
  constexpr auto value(auto x) const { return std::erf(x); }
  constexpr auto slope(auto x) const {
    return static_cast<decltype(x)>(1.1283791670955126) * std::exp(-x * x);  // 2 / sqrt(pi)
  }
};
struct Sin {
  constexpr auto value(auto x) const { return std::sin(x); }
  constexpr auto slope(auto x) const { return std::cos(x); }
};
struct Cos {
  constexpr auto value(auto x) const { return std::cos(x); }
  constexpr auto slope(auto x) const { return -std::sin(x); }
};
struct Acos {
  constexpr auto value(auto x) const { return std::acos(x); }
  constexpr auto slope(auto x) const { return -1 / std::sqrt(1 - x * x); }
};
struct Asin {
  constexpr auto value(auto x) const { return std::asin(x); }
  constexpr auto slope(auto x) const { return 1 / std::sqrt(1 - x * x); }
};
struct Atan {
  constexpr auto value(auto x) const { return std::atan(x); }
  constexpr auto slope(auto x) const { return 1 / (1 + x * x); }
};
struct HardSigmoid {
  constexpr auto value(auto x) const {
    using Real = decltype(x);
    return x <= -3 ? Real{0} : x >= 3 ? Real{1} : x / 6 + Real{0.5};
  }
  constexpr auto slope(auto x) const {
    return x > -3 && x < 3 ? decltype(x){1} / 6 : decltype(x){0};
  }
};
struct HardSwish {
  constexpr auto value(auto x) const {
    return x <= -3 ? decltype(x){0} : x >= 3 ? x : x * (x + 3) / 6;
  }
  constexpr auto slope(auto x) const {
    using Real = decltype(x);
    return x < -3 ? Real{0} : x <= 3 ? x / 3 + Real{0.5} : Real{1};
  }
};
struct Mish {
  constexpr auto value(auto x) const { return x * std::tanh(softplus_of(x)); }
  constexpr auto slope(auto x) const {
    const auto t = std::tanh(softplus_of(x));
    return t + x * sigmoid_of(x) * (1 - t * t);
  }
};
struct LogSigmoid {
  constexpr auto value(auto x) const { return -softplus_of(-x); }
  constexpr auto slope(auto x) const { return sigmoid_of(-x); }
};
// log(1 + exp(a x)) / a
struct Softplus {
  float a;
  constexpr auto value(auto x) const { return softplus_of(a * x) / a; }
  constexpr auto slope(auto x) const { return sigmoid_of(a * x); }
};
struct Elu {
  float a;
  constexpr auto value(auto x) const { return x > 0 ? x : a * std::expm1(x); }
  constexpr auto slope(auto x) const { return x > 0 ? decltype(x){1} : a * std::exp(x); }
};
struct Power {
  float a;
  constexpr auto value(auto x) const { return std::pow(x, static_cast<decltype(x)>(a)); }
  constexpr auto slope(auto x) const { return a * std::pow(x, static_cast<decltype(x)>(a) - 1); }
};
// A square within a of zero, straight beyond.
struct SmoothL1 {
  float a;
  constexpr auto value(auto x) const {
    const auto size = x < 0 ? -x : x;
    return size < a ? x * x / (2 * a) : size - a / 2;
  }
  constexpr auto slope(auto x) const {
    using Real = decltype(x);
    return x < a && -x < a ? x / a : x < 0 ? Real{-1} : Real{1};
  }
};
struct Shift {
  float a;
  constexpr auto value(auto x) const { return x + a; }
  constexpr float slope(auto) const { return 1; }
};
// Steps are flat: `map` gives them a gradient of zeros, and their slope is asked for by nobody.
struct Step {
  constexpr float slope(auto) const { return 0; }
};
struct Ceil : Step {
  constexpr auto value(auto x) const { return std::ceil(x); }
};
struct Floor : Step {
  constexpr auto value(auto x) const { return std::floor(x); }
};
// To the nearest whole number, of two that are equally near to the even one.
struct Round : Step {
  constexpr auto value(auto x) const { return std::rint(x); }
};
struct Trunc : Step {
  constexpr auto value(auto x) const { return std::trunc(x); }
};
// Not below a, not above b; keeps NaN.
struct Clip {
  float a, b;
  constexpr auto value(auto x) const {
    using Real = decltype(x);
    return x < a ? static_cast<Real>(a) : x > b ? static_cast<Real>(b) : x;
  }
  constexpr float slope(auto x) const { return x > a && x < b ? 1.0f : 0.0f; }
};

}  // namespace maps

// Calls body(name, function made of settings) for every function there is.
template <class Body>
void for_each_map(const MapSettings& s, const Body& body) {
  const auto a = static_cast<float>(s.a), b = static_cast<float>(s.b);
  body("abs", maps::Abs{});
  body("acos", maps::Acos{});
  body("asin", maps::Asin{});
  body("atan", maps::Atan{});
  body("ceil", maps::Ceil{});
  body("clip", maps::Clip{a, b});
  body("cos", maps::Cos{});
  body("elu", maps::Elu{a});
  body("erf", maps::Erf{});
  body("exp", maps::Exp{});
  body("expm1", maps::Expm1{});
  body("floor", maps::Floor{});
  body("hard_sigmoid", maps::HardSigmoid{});
  body("hard_swish", maps::HardSwish{});
  body("log", maps::Log{});
  body("log1p", maps::Log1p{});
  body("log_of_share", maps::LogOfShare{});
  body("log_sigmoid", maps::LogSigmoid{});
  body("mish", maps::Mish{});
  body("pow", maps::Power{a});
  body("reciprocal", maps::Reciprocal{});
  body("round", maps::Round{});
  body("rsqrt", maps::Rsqrt{});
  body("shift", maps::Shift{a});
  body("sin", maps::Sin{});
  body("smooth_l1", maps::SmoothL1{a});
  body("softplus", maps::Softplus{a});
  body("sqrt", maps::Sqrt{});
  body("square", maps::Square{});
  body("trunc", maps::Trunc{});
}

// Calls body(function) with the one that the attribute `of` names, with attributes a and b. False:
// there is none of that name.
template <class Body>
bool with_map(const Attrs& attrs, const Body& body) {
  const std::string_view wanted = attrs.text("of", "");
  bool found = false;
  for_each_map({attrs.real("a", 0), attrs.real("b", 0)}, [&](std::string_view name, auto function) {
    if (name != wanted) return;
    found = true;
    body(function);
  });
  return found;
}

// Whether the function that the attribute `of` names is flat wherever it has a slope.
inline bool is_step(const Attrs& attrs) {
  bool flat = false;
  with_map(attrs, [&](auto f) { flat = std::is_base_of_v<maps::Step, decltype(f)>; });
  return flat;
}

}  // namespace thimble
