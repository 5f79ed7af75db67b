// Kernels that work on one row [columns] at a time, or on a few: a loop over a range of rows, on
// every thread one.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/pointwise/staged_loop.h"

namespace thimble {

using RowLoop = UnitLoop;

// In f32, or staged; bit i of `whole`: input i is not made of rows.
inline std::unique_ptr<Kernel> make_row_kernel(const Signature& s, int64_t rows, int64_t cost,
                                               RowLoop loop, uint32_t whole = 0) {
  if (can_stage(s)) return std::make_unique<StagedLoop>(s, loop, rows, cost, whole);
  const auto wide = [](const TensorType& type) { return type.dtype == DType::f64; };
  if (std::ranges::any_of(s.inputs, wide) || s.outputs[0].elements() == 0) return nullptr;
  return std::make_unique<UnitKernel>(rows, cost, loop);
}

// Rows are all axes but the last of the first input.
inline std::unique_ptr<Kernel> make_rows(const Signature& s, RowLoop loop, int64_t cost_per_element,
                                         uint32_t whole = 0) {
  const Shape& x = s.inputs[0].shape;
  const int64_t rows = x.elements() / std::max<int64_t>(x.back(), 1);
  return make_row_kernel(s, rows, x.back() * cost_per_element, loop, whole);
}

// The same as CpuKernel::make.
template <RowLoop kLoop, int64_t kCostPerElement>
std::unique_ptr<Kernel> by_rows(const Signature& s) {
  return make_rows(s, kLoop, kCostPerElement);
}

}  // namespace thimble
