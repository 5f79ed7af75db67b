// Parts that the files of rules/ are written with. A rule is
//
//   template <class Real>
//   struct Name {
//     static constexpr UpdateRule kRule = {...};          graph/update_rule.h
//     explicit Name(const RuleSettings& settings);        on the host
//     template <class Scalar>
//     constexpr void begin(Scalar rate, Scalar number);   what follows from a step's scalars
//     constexpr Real step(Real w, Real g, Real (&state)[k]) const;   w' of one element
//   };
//
// `step` replaces the states; a rule without any gets a place for one. Real is float, double (the
// reference, for f64 weights) or a device's number. Scalar is double on the host and float on a
// device, which reads the scalars from its own memory. A constexpr function is one of host and
// device alike. always_inline: kernels that are compiled for several instruction sets must contain
// it. A rule that is no template has an op of its own, kRule.op.
#pragma once

#include <cmath>
#include <type_traits>

#include "graph/attrs.h"
#include "graph/update_rule.h"

namespace thimble {

// The hyper-parameters of one update: its attrs, or what is usual.
struct RuleSettings {
  double momentum, beta1, beta2, epsilon, weight_decay;

  RuleSettings(const Attrs& attrs, const UpdateRule& rule)
      : momentum(attrs.real("momentum", rule.momentum.value_or(0))),
        beta1(attrs.real("beta1", rule.beta1.value_or(0))),
        beta2(attrs.real("beta2", rule.beta2.value_or(0))),
        epsilon(attrs.real("epsilon", rule.epsilon.value_or(0))),
        weight_decay(attrs.real("weight_decay", 0)) {}
};

// A number that begin() computes with.
struct Setting {
  double wide;
  float narrow;

  explicit Setting(double value) : wide(value), narrow(static_cast<float>(value)) {}
  template <class Scalar>
  [[gnu::always_inline]] constexpr Scalar as() const {
    if constexpr (std::is_same_v<Scalar, double>) {
      return wide;
    } else {
      return narrow;
    }
  }
};

// The share that a running mean keeps of itself at every step.
struct Kept {
  double share;
  float log_share;

  explicit Kept(double beta) : share(beta), log_share(static_cast<float>(std::log(beta))) {}
  // How much of a mean that began at zero is there after so many steps: 1 - share^number.
  template <class Scalar>
  [[gnu::always_inline]] constexpr Scalar filled(Scalar number) const {
    if constexpr (std::is_same_v<Scalar, double>) {
      return 1 - std::pow(share, number);
    } else {
      return -expm1f(number * log_share);  // no digits are lost where the power is near 1
    }
  }
};

// How many states a rule has, and what arrays of them have room for.
template <class Rule>
inline constexpr size_t kStates = Rule::kRule.states.size();
template <class Rule>
inline constexpr size_t kStateRoom = kStates<Rule> > 0 ? kStates<Rule> : 1;

[[gnu::always_inline]] inline float square_root(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double square_root(double x) { return __builtin_sqrt(x); }

}  // namespace thimble
