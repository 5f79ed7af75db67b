// The shape of a tensor: up to six extents, row-major, copied by value without allocation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/number/bytes.h"
#include "base/number/dtype.h"

namespace thimble {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  // Counts from the end: back(1) is the innermost extent. REQUIRES: 1 <= n <= rank().
  int64_t back(int n = 1) const { return dims_[static_cast<size_t>(rank_ - n)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t elements() const;
  // Product of the extents in [begin, end).
  int64_t product(int begin, int end) const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[100,32,32,16]"

struct TensorType {
  Shape shape;
  DType dtype = DType::f32;

  int64_t elements() const { return shape.elements(); }
  Bytes bytes() const { return Bytes(elements() * size_of(dtype)); }
  bool operator==(const TensorType&) const = default;
};

std::string to_string(const TensorType& type);  // "f32[100,32,32,16]"

// Numpy's rule: align at the right, extents equal or one of them 1. Throws UserError naming `op`.
Shape broadcast(const Shape& a, const Shape& b, std::string_view op);

}  // namespace thimble
