// What the two updates of Adafactor (Shazeer and Stern 2018) share: attrs epsilon (1e-30), clip
// (1), weight_decay (0, decoupled).
//   beta = 1 - step^-0.8;  second moments are means of g^2 + epsilon under it
//   u = g / sqrt(second moment);  w' = w - lr weight_decay w - lr u / max(1, rms(u) / clip)
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {

// A weight with the scalars of one step. `root(i)` is the square root of element i's second moment.
template <class T>
struct AdafactorStep {
  using Real = Accumulator<T>;

  const T* w_before;
  const T* gradient;
  T* w_after;
  int64_t elements;
  double rate, keep, epsilon, clip, decay;

  // lr and step are the inputs with these numbers.
  AdafactorStep(const KernelArgs& args, size_t lr, size_t step)
      : w_before(args.inputs[0].as<T>()),
        gradient(args.inputs[1].as<T>()),
        w_after(args.outputs[0].as<T>()),
        elements(args.inputs[0].elements()),
        rate(static_cast<double>(*args.inputs[lr].as<float>())),
        keep(1 - std::pow(static_cast<double>(*args.inputs[step].as<float>()), -0.8)),
        epsilon(args.attrs->real("epsilon", 1e-30)),
        clip(args.attrs->real("clip", 1)),
        decay(args.attrs->real("weight_decay", 0)) {}

  double square(int64_t i) const {
    const double g = static_cast<double>(widen(gradient[i]));
    return g * g + epsilon;
  }

  template <class Root>
  void move(const Root& root) const {
    double squares = 0;
    for (int64_t i = 0; i < elements; ++i) {
      const double u = static_cast<double>(widen(gradient[i])) / root(i);
      squares += u * u;
    }
    const double rms = std::sqrt(squares / static_cast<double>(elements));
    const double length = rate / std::max(1.0, rms / clip);
    for (int64_t i = 0; i < elements; ++i) {
      const double w = static_cast<double>(widen(w_before[i]));
      const double g = static_cast<double>(widen(gradient[i]));
      store(w_after, i, static_cast<Real>((1 - rate * decay) * w - length * g / root(i)));
    }
  }
};

}  // namespace thimble
