// Walks over tensors whose elements are not met in storage order: broadcast, transposed, sliced or
// reduced ones. Nothing here allocates.
#pragma once

#include <array>
#include <concepts>

#include "base/error.h"
#include "graph/op.h"
#include "ops/reference.h"

namespace thimble {

using Strides = std::array<int64_t, Shape::kMaxRank>;

inline Strides row_major(const Shape& shape) {
  Strides strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// The strides that read `from` as if it had shape `to`: 0 along the axes that repeat.
// REQUIRES: `from` broadcasts to `to`.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides own = row_major(from);
  Strides strides{};
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int there = axis + to.rank() - from.rank();
    const bool repeats = from[axis] == 1 && to[there] != 1;
    strides[static_cast<size_t>(there)] = repeats ? 0 : own[static_cast<size_t>(axis)];
  }
  return strides;
}

// Calls body(at, offsets) for every element of `shape` in row-major order: `at` counts up from 0,
// offsets[n] is the element's place under strides[n].
template <size_t N, class Body>
void for_each_element(const Shape& shape, const std::array<Strides, N>& strides, Body&& body) {
  const int64_t count = shape.elements();
  std::array<int64_t, Shape::kMaxRank> index{};
  std::array<int64_t, N> offsets{};
  for (int64_t at = 0; at < count; ++at) {
    body(at, offsets);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][a];
      if (++index[a] < shape[axis]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][a] * shape[axis];
      index[a] = 0;
    }
  }
}

inline Shape with_extent(const Shape& shape, int axis, int64_t extent) {
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int a = 0; a < shape.rank(); ++a) dims[static_cast<size_t>(a)] = shape[a];
  dims[static_cast<size_t>(axis)] = extent;
  return Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(shape.rank())));
}

// The attribute `axis`, checked against a shape.
inline int axis_of(std::string_view op, const Attrs& attrs, const Shape& shape) {
  const int64_t axis = attrs.integer("axis");
  user_check(axis >= 0 && axis < shape.rank(), "[{}] {} has no axis {}", op, to_string(shape),
             axis);
  return static_cast<int>(axis);
}

// Moves one element of any dtype unchanged, or adds it into what is there.
template <class T>
void move_element(T* to, int64_t at, T value, bool add) {
  if constexpr (std::integral<T>) {
    to[at] = add ? static_cast<T>(to[at] + value) : value;
  } else if (add) {
    store(to, at, widen(value), true);
  } else {
    to[at] = value;
  }
}

// The plain kernel of ops whose element `at` is the input's at offsets by `strides`.
inline void move_strided(const KernelArgs& args, const Strides& strides) {
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for_each_element<1>(args.outputs[0].type.shape, {strides}, [&](int64_t at, const auto& from) {
      move_element(y, at, x[from[0]], args.adds_into(0));
    });
  });
}

inline void check_floating(std::string_view op, const TensorType& type) {
  user_check(is_floating(type.dtype), "[{}] wants a floating tensor, got {}", op, to_string(type));
}

inline double count_of(const TensorType& type) { return static_cast<double>(type.elements()); }

}  // namespace thimble
