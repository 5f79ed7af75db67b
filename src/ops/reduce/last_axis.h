// A tensor [..., C] seen as rows of its last axis: what biases, normalisations and softmax work on.
#pragma once

#include "ops/checks.h"
#include "ops/reading.h"
#include "ops/reference.h"

namespace thimble {

struct Rows {
  int64_t count;
  int64_t columns;
};

// REQUIRES: at least one axis (check_rows).
inline Rows rows_of(const Shape& shape) {
  return {shape.product(0, shape.rank() - 1), shape.back()};
}

inline void check_rows(std::string_view op, const TensorType& x) {
  check_floating(op, "tensor", x);
  if (x.shape.rank() >= 1) return;
  user_error("[{}] wants a tensor [...,C], got a scalar", op);
}

// One value of dtype `dtype` per element of x's last axis.
inline TensorType channels_of(const TensorType& x, DType dtype) {
  return {{x.shape.back()}, dtype};
}

inline void check_channels(std::string_view op, std::string_view what, const TensorType& got,
                           const TensorType& x) {
  check_type(op, what, got, channels_of(x, x.dtype));
}

// How gradients of normalisations (x, mean, deviation or variance, ...) read their inputs. x counts
// as linear: its square comes in divided by the numbers that share the statistics.
inline constexpr auto norm_reading = reads<Reading::exact, 1, 2>;

// Scales and shifts of normalisations: as few as statistics, and of their dtype.
inline void check_scales(std::string_view op, std::string_view what, const TensorType& got,
                         const TensorType& x) {
  check_type(op, what, got, channels_of(x, statistics_dtype(x.dtype)));
}

}  // namespace thimble
