// Small tensors that are known while a net is built: shapes, axes, positions, masks, and what a
// file computes of them.
#pragma once

#include <functional>
#include <vector>

#include "base/number/shape.h"

namespace thimble {

struct Known {
  Shape shape;
  std::vector<double> numbers;  // row-major
  bool whole = true;            // of whole numbers

  int64_t elements() const { return shape.elements(); }
  std::vector<int64_t> wholes() const;
};

// All throw UserError where tensors do not fit each other, or are larger than such tensors are.
Known known_list(std::span<const int64_t> numbers);
Known combined(const Known& a, const Known& b,
               const std::function<double(double, double)>& combine);
Known gathered(const Known& table, const Known& indices, int axis);
Known sliced(const Known& x, int axis, int64_t begin, int64_t end, int64_t step);
Known joined(std::span<const Known> parts, int axis);
Known repeated(const Known& x, const Shape& shape);
Known filled(const Shape& shape, double number, bool whole);
// Below the diagonal, or above it, and on it moved by `diagonal`; zeros elsewhere.
Known triangle(const Known& x, int64_t diagonal, bool upper);
// Slices of x, by their leading places in the last axis of `indices`, become those of `updates`.
Known scattered(const Known& x, const Known& indices, const Known& updates);
// The other way: slices of x by their leading places.
Known gathered_by_places(const Known& x, const Known& indices);
Known turned(const Known& x, std::span<const int64_t> axes);

}  // namespace thimble
