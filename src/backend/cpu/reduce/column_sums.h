// Sums over the rows of a matrix [rows, columns]: gradients of biases, reductions over leading
// axes.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {

class ColumnSums {
 public:
  // Of x [rows, columns], in f32 or a 16-bit float.
  ColumnSums(DType x, int64_t rows, int64_t columns)
      : columns_(columns), staged_(x != DType::f32), parts_(rows, columns) {}

  Bytes workspace() const {
    const auto sum = static_cast<int64_t>(sizeof(double));
    const auto room = staged_ ? kBlock * static_cast<int64_t>(sizeof(float)) : 0;
    return Bytes(parts_.count() * columns_ * (sum + room));
  }
  // to[c] = factor * sum of x[., c], or added.
  void run(const TensorRef& x, std::byte* workspace, double factor, bool add,
           const TensorRef& to) const;

 private:
  static constexpr int64_t kBlock = 64;  // rows

  int64_t columns_;
  bool staged_;
  Parts parts_;
};

}  // namespace thimble
