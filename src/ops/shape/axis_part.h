// A part of one axis, as slices take it out and put it back:
//
//   row  |<- begin ->|<- part ->|......|     `whole` elements to the next of `outer` rows
#pragma once

#include "graph/op.h"

namespace thimble {

struct AxisPart {
  int64_t outer, whole, part, begin;
};

// Attrs axis and begin say where in `whole` the part is. REQUIRES: both are in range.
inline AxisPart axis_part(const Shape& whole, const Shape& part, const Attrs& attrs) {
  const auto axis = static_cast<int>(attrs.integer("axis"));
  const int64_t inner = whole.product(axis + 1, whole.rank());
  return {whole.product(0, axis), whole[axis] * inner, part[axis] * inner,
          attrs.integer("begin") * inner};
}

// Of slice, and of slice_backward.
inline Attrs slice_attrs(int64_t axis, int64_t begin, int64_t end) {
  return {{"axis", axis}, {"begin", begin}, {"end", end}};
}
inline Attrs padding_attrs(int64_t axis, int64_t begin, int64_t extent) {
  return {{"axis", axis}, {"begin", begin}, {"extent", extent}};
}

}  // namespace thimble
