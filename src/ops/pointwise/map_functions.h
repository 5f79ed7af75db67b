// Functions of one number that ops, CPU and GPU kernels of `map` share: what each makes of x, and its
// slope there. A function is a struct with one or two settings; the table below is the only list.
#pragma once

#include <cmath>
#include <string_view>

#include "base/error.h"
#include "graph/attrs.h"

namespace thimble {

struct MapSettings {
  double a = 0, b = 0;
};

namespace maps {

template <class Real>
constexpr Real sigmoid_of(Real x) {
  return 1 / (1 + std::exp(-x));
}
// log(1 + exp(x)), for x of any size.
template <class Real>
constexpr Real softplus_of(Real x) {
  return (x > 0 ? x : Real{0}) + std::log1p(std::exp(x > 0 ? -x : x));
}

struct Plain {
  explicit Plain(const MapSettings&) {}
};
struct OneSetting {
  float a;
  explicit OneSetting(const MapSettings& s) : a(static_cast<float>(s.a)) {}
};

struct Exp : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::exp(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return std::exp(x);
  }
};
struct Log : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::log(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return 1 / x;
  }
};
// Of shares, whose logarithm counts only where there is one: x log x is 0 at 0.
struct LogOfShare : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x > 0 ? std::log(x) : Real{0};
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x > 0 ? 1 / x : Real{0};
  }
};
struct Log1p : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::log1p(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return 1 / (1 + x);
  }
};
struct Expm1 : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::expm1(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return std::exp(x);
  }
};
struct Sqrt : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::sqrt(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return Real{0.5} / std::sqrt(x);
  }
};
struct Rsqrt : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return 1 / std::sqrt(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return Real{-0.5} / (x * std::sqrt(x));
  }
};
struct Reciprocal : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return 1 / x;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return -1 / (x * x);
  }
};
struct Abs : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x < 0 ? -x : x;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x < 0 ? Real{-1} : x > 0 ? Real{1} : Real{0};
  }
};
struct Square : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x * x;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return 2 * x;
  }
};
struct Erf : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::erf(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return static_cast<Real>(1.1283791670955126) * std::exp(-x * x);  // 2 / sqrt(pi)
  }
};
struct Sin : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::sin(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return std::cos(x);
  }
};
struct Cos : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::cos(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return -std::sin(x);
  }
};
struct HardSigmoid : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x <= -3 ? Real{0} : x >= 3 ? Real{1} : x / 6 + Real{0.5};
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x > -3 && x < 3 ? Real{1} / 6 : Real{0};
  }
};
struct HardSwish : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x <= -3 ? Real{0} : x >= 3 ? x : x * (x + 3) / 6;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x < -3 ? Real{0} : x <= 3 ? x / 3 + Real{0.5} : Real{1};
  }
};
struct Mish : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return x * std::tanh(softplus_of(x));
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    const Real t = std::tanh(softplus_of(x));
    return t + x * sigmoid_of(x) * (1 - t * t);
  }
};
struct LogSigmoid : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real value(Real x) const {
    return -softplus_of(-x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return sigmoid_of(-x);
  }
};
// log(1 + exp(a x)) / a
struct Softplus : OneSetting {
  using OneSetting::OneSetting;
  template <class Real>
  constexpr Real value(Real x) const {
    return softplus_of(static_cast<Real>(a) * x) / static_cast<Real>(a);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return sigmoid_of(static_cast<Real>(a) * x);
  }
};
struct Elu : OneSetting {
  using OneSetting::OneSetting;
  template <class Real>
  constexpr Real value(Real x) const {
    return x > 0 ? x : static_cast<Real>(a) * std::expm1(x);
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x > 0 ? Real{1} : static_cast<Real>(a) * std::exp(x);
  }
};
struct Power : OneSetting {
  using OneSetting::OneSetting;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::pow(x, static_cast<Real>(a));
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return static_cast<Real>(a) * std::pow(x, static_cast<Real>(a) - 1);
  }
};
// A square within a of zero, straight beyond.
struct SmoothL1 : OneSetting {
  using OneSetting::OneSetting;
  template <class Real>
  constexpr Real value(Real x) const {
    const Real size = x < 0 ? -x : x, within = static_cast<Real>(a);
    return size < within ? x * x / (2 * within) : size - within / 2;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    const Real size = x < 0 ? -x : x, within = static_cast<Real>(a);
    return size < within ? x / within : x < 0 ? Real{-1} : Real{1};
  }
};
struct Shift : OneSetting {
  using OneSetting::OneSetting;
  template <class Real>
  constexpr Real value(Real x) const {
    return x + static_cast<Real>(a);
  }
  template <class Real>
  constexpr Real slope(Real) const {
    return 1;
  }
};
// Steps are flat: `map` gives them a gradient of zeros, and their slope is asked for by nobody.
struct Step : Plain {
  using Plain::Plain;
  template <class Real>
  constexpr Real slope(Real) const {
    return 0;
  }
};
struct Ceil : Step {
  using Step::Step;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::ceil(x);
  }
};
struct Floor : Step {
  using Step::Step;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::floor(x);
  }
};
// To the nearest whole number, of two that are equally near to the even one.
struct Round : Step {
  using Step::Step;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::rint(x);
  }
};
struct Trunc : Step {
  using Step::Step;
  template <class Real>
  constexpr Real value(Real x) const {
    return std::trunc(x);
  }
};
// Not below a, not above b; keeps NaN.
struct Clip {
  float a, b;
  explicit Clip(const MapSettings& s) : a(static_cast<float>(s.a)), b(static_cast<float>(s.b)) {}
  template <class Real>
  constexpr Real value(Real x) const {
    return x < static_cast<Real>(a)   ? static_cast<Real>(a)
           : x > static_cast<Real>(b) ? static_cast<Real>(b)
                                      : x;
  }
  template <class Real>
  constexpr Real slope(Real x) const {
    return x > static_cast<Real>(a) && x < static_cast<Real>(b) ? Real{1} : Real{0};
  }
};

}  // namespace maps

// Calls body(name, function made of settings) for every function there is.
template <class Body>
void for_each_map(const MapSettings& s, const Body& body) {
  body("abs", maps::Abs(s));
  body("ceil", maps::Ceil(s));
  body("clip", maps::Clip(s));
  body("cos", maps::Cos(s));
  body("elu", maps::Elu(s));
  body("erf", maps::Erf(s));
  body("exp", maps::Exp(s));
  body("expm1", maps::Expm1(s));
  body("floor", maps::Floor(s));
  body("hard_sigmoid", maps::HardSigmoid(s));
  body("hard_swish", maps::HardSwish(s));
  body("log", maps::Log(s));
  body("log1p", maps::Log1p(s));
  body("log_of_share", maps::LogOfShare(s));
  body("log_sigmoid", maps::LogSigmoid(s));
  body("mish", maps::Mish(s));
  body("pow", maps::Power(s));
  body("reciprocal", maps::Reciprocal(s));
  body("round", maps::Round(s));
  body("rsqrt", maps::Rsqrt(s));
  body("shift", maps::Shift(s));
  body("sin", maps::Sin(s));
  body("smooth_l1", maps::SmoothL1(s));
  body("softplus", maps::Softplus(s));
  body("sqrt", maps::Sqrt(s));
  body("square", maps::Square(s));
  body("trunc", maps::Trunc(s));
}

// Whether the function that the attribute `of` names is flat wherever it has a slope.
inline bool is_step(const Attrs& attrs) {
  const std::string_view name = attrs.text("of", "");
  return name == "ceil" || name == "floor" || name == "round" || name == "trunc";
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

}  // namespace thimble
