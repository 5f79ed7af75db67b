// Small helpers for the plain kernels and shape rules in this folder.
#pragma once

#include <type_traits>

#include "base/error.h"
#include "graph/op.h"

namespace thimble {

// A stored element in the type that sums are done in: float for 16-bit floats, else itself.
template <class T>
Accumulator<T> widen(T value) {
  return static_cast<Accumulator<T>>(value);
}

// Writes or adds into one element, rounding once.
template <class T>
void store(T* to, int64_t at, Accumulator<T> value, bool add = false) {
  to[at] = static_cast<T>(add ? widen(to[at]) + value : value);
}

// The dtype of means, variances, losses and their like: that of sums over `dtype`. Its C++ type is
// Accumulator<T>.
constexpr DType statistics_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

inline void check_inputs(std::string_view op, std::span<const TensorType> inputs, size_t count) {
  user_check(inputs.size() == count, "[{}] takes {} inputs, got {}", op, count, inputs.size());
}

// One input, which is floating.
inline void check_one_floating(std::string_view op, std::span<const TensorType> inputs) {
  check_inputs(op, inputs, 1);
  user_check(is_floating(inputs[0].dtype), "[{}] wants a floating tensor, got {}", op,
             to_string(inputs[0]));
}

inline void check_same_type(std::string_view op, const TensorType& a, const TensorType& b) {
  user_check(a == b, "[{}] wants two tensors of one type, got {} and {}", op, to_string(a),
             to_string(b));
}

}  // namespace thimble
