// Normalisation with statistics of each sample's channel groups: the plain kernels behind
// group_norm and layer_norm (rows are samples of one group and one place).
//
//   x [batch, places, channels], channels = groups * per_group; mean, rstd [batch, groups]
#pragma once

#include <cmath>

#include "ops/reference.h"

namespace thimble {

struct GroupGeometry {
  int64_t batch, places, channels, groups;
  bool relu;  // fused after the affine map

  int64_t per_group() const { return channels / groups; }
  int64_t at(int64_t n, int64_t place, int64_t c) const {
    return (n * places + place) * channels + c;
  }
  double group_size() const { return static_cast<double>(places * per_group()); }
  // Calls body(element, channel) for the elements of one sample's group.
  template <class Body>
  void for_each_in_group(int64_t n, int64_t group, Body&& body) const {
    for (int64_t place = 0; place < places; ++place) {
      for (int64_t c = group * per_group(); c < (group + 1) * per_group(); ++c) {
        body(at(n, place, c), c);
      }
    }
  }
};

// Each row of the last axis as a group of its own.
inline GroupGeometry group_per_row(const Shape& x) {
  return {x.product(0, x.rank() - 1), 1, x.back(), 1, false};
}

// (x, gamma, beta) -> (y, mean, rstd); attr epsilon (1e-5). y may be x.
template <class T>
void normalize_groups(const KernelArgs& args, const GroupGeometry& g) {
  using Real = Accumulator<T>;
  const T* const x = args.inputs[0].as<T>();
  const Real *const gamma = args.inputs[1].as<Real>(), *const beta = args.inputs[2].as<Real>();
  const double epsilon = args.attrs->real("epsilon", 1e-5);
  T* const y = args.outputs[0].as<T>();
  Real *const mean = args.outputs[1].as<Real>(), *const rstd = args.outputs[2].as<Real>();
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t group = 0; group < g.groups; ++group) {
      const int64_t k = n * g.groups + group;
      double sum = 0, squares = 0;
      g.for_each_in_group(n, group,
                          [&](int64_t at, int64_t) { sum += static_cast<double>(x[at]); });
      const double center = sum / g.group_size();
      g.for_each_in_group(n, group, [&](int64_t at, int64_t) {
        const double deviation = static_cast<double>(x[at]) - center;
        squares += deviation * deviation;
      });
      mean[k] = static_cast<Real>(center);
      rstd[k] = static_cast<Real>(1 / std::sqrt(squares / g.group_size() + epsilon));
      g.for_each_in_group(n, group, [&](int64_t at, int64_t c) {
        const Real z = (widen(x[at]) - mean[k]) * rstd[k] * gamma[c] + beta[c];
        store(y, at, g.relu && z <= 0 ? 0 : z);
      });
    }
  }
}

// (x, mean, rstd, gamma [, beta], dy) -> (dx, dgamma, dbeta). dx may be dy. The mask of a relu is
// recomputed from x. That alone reads beta, so there is no beta without a relu.
template <class T>
void normalize_groups_backward(const KernelArgs& args, const GroupGeometry& g) {
  using Real = Accumulator<T>;
  const T *const x = args.inputs[0].as<T>(), *const dy = args.inputs.back().as<T>();
  const Real *const mean = args.inputs[1].as<Real>(), *const rstd = args.inputs[2].as<Real>();
  const Real* const gamma = args.inputs[3].as<Real>();
  const Real* const beta = g.relu ? args.inputs[4].as<Real>() : nullptr;
  const auto normalized = [&](int64_t k, int64_t at) { return (widen(x[at]) - mean[k]) * rstd[k]; };
  const auto masked = [&](int64_t k, int64_t at, int64_t c) {
    const bool off = g.relu && normalized(k, at) * gamma[c] + beta[c] <= 0;
    return off ? Real{0} : widen(dy[at]);
  };
  for (int64_t c = 0; c < g.channels; ++c) {
    double dgamma = 0, dbeta = 0;
    for (int64_t n = 0; n < g.batch; ++n) {
      const int64_t k = n * g.groups + c / g.per_group();
      for (int64_t place = 0; place < g.places; ++place) {
        const int64_t at = g.at(n, place, c);
        const Real d = masked(k, at, c);
        dgamma += static_cast<double>(d * normalized(k, at));
        dbeta += static_cast<double>(d);
      }
    }
    store(args.outputs[1].as<Real>(), c, static_cast<Real>(dgamma), args.adds_into(1));
    store(args.outputs[2].as<Real>(), c, static_cast<Real>(dbeta), args.adds_into(2));
  }
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t group = 0; group < g.groups; ++group) {
      const int64_t k = n * g.groups + group;
      double sum = 0, sum_normalized = 0;
      g.for_each_in_group(n, group, [&](int64_t at, int64_t c) {
        const Real d = masked(k, at, c) * gamma[c];
        sum += static_cast<double>(d);
        sum_normalized += static_cast<double>(d * normalized(k, at));
      });
      const Real mean_d = static_cast<Real>(sum / g.group_size());
      const Real mean_d_normalized = static_cast<Real>(sum_normalized / g.group_size());
      g.for_each_in_group(n, group, [&](int64_t at, int64_t c) {
        const Real d = masked(k, at, c) * gamma[c];
        store(args.outputs[0].as<T>(), at,
              rstd[k] * (d - mean_d - normalized(k, at) * mean_d_normalized), args.adds_into(0));
      });
    }
  }
}

inline void run_group_norm(const KernelArgs& args, const GroupGeometry& g) {
  with_float_type(args.inputs[0].type.dtype,
                  [&]<class T>(TypeTag<T>) { normalize_groups<T>(args, g); });
}

inline void run_group_norm_backward(const KernelArgs& args, const GroupGeometry& g) {
  with_float_type(args.inputs[0].type.dtype,
                  [&]<class T>(TypeTag<T>) { normalize_groups_backward<T>(args, g); });
}

}  // namespace thimble
