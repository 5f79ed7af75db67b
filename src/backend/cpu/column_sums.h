// Sums over the rows of a matrix [rows, columns]: gradients of biases, reductions over leading
// axes.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/parallel.h"

namespace thimble {

class ColumnSums {
 public:
  ColumnSums(int64_t rows, int64_t columns) : columns_(columns), parts_(rows, columns) {}

  Bytes workspace() const {
    return Bytes(parts_.count() * columns_ * static_cast<int64_t>(sizeof(double)));
  }
  // to[c] = factor * sum of x[., c], or added.
  void run(const float* x, std::byte* workspace, double factor, bool add, float* to) const;

 private:
  int64_t columns_;
  Parts parts_;
};

}  // namespace thimble
