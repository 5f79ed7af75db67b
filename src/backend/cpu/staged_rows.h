// Rows [columns] of a 16-bit tensor, some at a time, for kernels whose scales and statistics are
// f32.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

// Rows of x that a thread widens at once: about 8 KiB; 0: x is f32, so none.
inline int64_t staged_rows(const TensorType& x) {
  return x.dtype == DType::f32 ? 0 : std::max<int64_t>(1, 2048 / x.shape.back());
}

// x (and what has its dtype) is f32 or a 16-bit float, all the rest is f32, and there is work to
// do.
inline bool normalisable(const Signature& s) {
  const DType x = s.inputs[0].dtype;
  const auto fits = [x](const TensorType& type) {
    return (type.dtype == x || type.dtype == DType::f32) && type.elements() > 0;
  };
  return is_stageable(x) && std::ranges::all_of(s.inputs, fits) &&
         std::ranges::all_of(s.outputs, fits);
}

}  // namespace thimble
