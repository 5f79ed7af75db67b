// A walk over tensors that repeat or lie in another order, as rows: neighbouring axes that every
// tensor walks alike become one, and the last of them is the row.
//
//   y [2,3,8,5] = a [2,1,1,5] + b [3,8,1]   is   6 x 8 rows of 5, along which b repeats
#pragma once

#include <array>

#include "ops/shape/strided.h"

namespace thimble {

template <size_t N>
struct StridedRows {
  int rank = 0;  // of what is left, without the row
  std::array<int64_t, Shape::kMaxRank> extents{};
  std::array<Strides, N> strides{};
  int64_t rows = 1, count = 1;     // a row's elements
  std::array<int64_t, N> steps{};  // from an element of a row to the next

  StridedRows() = default;
  StridedRows(const Shape& shape, const std::array<Strides, N>& all) {
    int axes = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto from = static_cast<size_t>(axis);
      if (shape[axis] == 1) continue;
      bool joins = axes > 0;
      for (size_t n = 0; n < N && joins; ++n) {
        joins = strides[n][static_cast<size_t>(axes - 1)] == all[n][from] * shape[axis];
      }
      if (!joins) ++axes;
      const auto to = static_cast<size_t>(axes - 1);
      extents[to] = (joins ? extents[to] : 1) * shape[axis];
      for (size_t n = 0; n < N; ++n) strides[n][to] = all[n][from];
    }
    rank = std::max(axes - 1, 0);
    for (int axis = 0; axis < rank; ++axis) rows *= extents[static_cast<size_t>(axis)];
    if (axes == 0) return;
    count = extents[static_cast<size_t>(rank)];
    for (size_t n = 0; n < N; ++n) steps[n] = strides[n][static_cast<size_t>(rank)];
  }

  // Where a row begins in every tensor.
  std::array<int64_t, N> begin(int64_t row) const {
    std::array<int64_t, N> at{};
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      const int64_t index = row % extents[a];
      row /= extents[a];
      for (size_t n = 0; n < N; ++n) at[n] += index * strides[n][a];
    }
    return at;
  }
};

}  // namespace thimble
