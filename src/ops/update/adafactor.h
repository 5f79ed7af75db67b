// What the two updates of Adafactor (Shazeer and Stern 2018) share: attrs epsilon (1e-30), clip
// (1), weight_decay (0, decoupled).
//   beta = 1 - step^-0.8;  second moments are means of g^2 + epsilon under it
//   u = g / sqrt(second moment);  w' = w - lr weight_decay w - lr u / max(1, rms(u) / clip)
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/update/update.h"

namespace thimble {

// A weight with the scalars of one step. `root(i)` is the square root of element i's second moment.
template <class Real>
struct AdafactorStep {
  const UpdateElements<Real>& values;
  int64_t elements;
  double rate, keep, epsilon, clip, decay;

  // lr and step are the inputs with these numbers.
  AdafactorStep(const UpdateElements<Real>& update, const KernelArgs& args, size_t lr, size_t step)
      : values(update),
        elements(args.inputs[0].elements()),
        rate(static_cast<double>(*args.inputs[lr].template as<float>())),
        keep(1 - std::pow(static_cast<double>(*args.inputs[step].template as<float>()), -0.8)),
        epsilon(args.attrs->real("epsilon", 1e-30)),
        clip(args.attrs->real("clip", 1)),
        decay(args.attrs->real("weight_decay", 0)) {}

  double gradient(int64_t i) const { return static_cast<double>(values.gradient(i)); }
  double square(int64_t i) const { return gradient(i) * gradient(i) + epsilon; }

  template <class Root>
  void move(const Root& root) const {
    double squares = 0;
    for (int64_t i = 0; i < elements; ++i) {
      const double u = gradient(i) / root(i);
      squares += u * u;
    }
    const double rms = std::sqrt(squares / static_cast<double>(elements));
    const double length = rate / std::max(1.0, rms / clip);
    for (int64_t i = 0; i < elements; ++i) {
      const double w = static_cast<double>(values.read(0, i));
      values.write(0, i,
                   static_cast<Real>((1 - rate * decay) * w - length * gradient(i) / root(i)));
    }
  }
};

}  // namespace thimble
