// A tensor of an imported net: a value of ours, whose axes may lie in another order than the net's.
// Axes that the net reorders are reordered here alone; bytes move only where an op asks for an
// order.
//
//   net: x [N,C,H,W]    ours: value [N,H,W,C], order = {0, 2, 3, 1}
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"

namespace thimble {

using Order = std::vector<int>;  // axis k of the value is axis order[k] of the net's tensor

struct PermutedTensor {
  ValueId value;
  Order order;
};

Order plain_order(int rank);
bool is_plain(const Order& order);
// Which axis of the value is axis `axis` of the net's tensor.
int place_of(const Order& order, int axis);

std::vector<int64_t> dims_of(const Shape& shape);

// The shape as the net sees it.
Shape shape_of(const Builder& b, const PermutedTensor& x);
// The value under another shape; itself where it has that.
ValueId reshaped(Builder& b, ValueId x, const std::vector<int64_t>& dims);
// The value with its axes in that order: as it is, seen otherwise where that moves axes of extent 1
// only, or transposed.
ValueId in_order(Builder& b, const PermutedTensor& x, const Order& order);
// As the net has it.
ValueId plain(Builder& b, const PermutedTensor& x);

// The tensor under another shape. Axes that are joined or split apart stay where they lie if those
// that belong together lie together; else it is put into the net's order first.
PermutedTensor reshape_permuted(Builder& b, const PermutedTensor& x, const Shape& shape);

}  // namespace thimble
