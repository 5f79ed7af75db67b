// Shared by batch_norm and its gradient: their types, and one channel's affine map. Both compute
// the pre-activation with the same operations, so that a relu's mask is the same in both.
#pragma once

#include <cmath>

#include "ops/reduce/last_axis.h"
#include "ops/reference.h"

namespace thimble {

// Checks the inputs (x, mean, var, gamma, beta, ...) that batch_norm and its gradient begin with.
inline void check_batch_norm(std::string_view op, std::span<const TensorType> inputs) {
  check_rows(op, inputs[0]);
  const TensorType statistics = channels_of(inputs[0], statistics_dtype(inputs[0].dtype));
  check_type(op, "mean", inputs[1], statistics);
  check_type(op, "var", inputs[2], statistics);
  check_scales(op, "gamma", inputs[3], inputs[0]);
  check_scales(op, "beta", inputs[4], inputs[0]);
}

template <class Real>
struct NormChannel {
  Real mean, rstd, gamma, beta;

  Real normalized(Real x) const { return (x - mean) * rstd; }
  Real pre_activation(Real x) const { return normalized(x) * gamma + beta; }
};

// REQUIRES: the inputs of `args` begin as in check_batch_norm.
template <class T>
NormChannel<Accumulator<T>> norm_channel(const KernelArgs& args, int64_t c) {
  using Real = Accumulator<T>;
  const Real variance = args.inputs[2].as<Real>()[c];
  return {args.inputs[1].as<Real>()[c],
          1 / std::sqrt(variance + static_cast<Real>(args.attrs->real("epsilon", 1e-5))),
          args.inputs[3].as<Real>()[c], args.inputs[4].as<Real>()[c]};
}

}  // namespace thimble
