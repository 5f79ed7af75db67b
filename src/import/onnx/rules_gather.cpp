// Gather and GatherND: slices of a tensor by places.
#include "import/onnx/onnx_lowering.h"

namespace thimble {

// A table's rows by ids, or places of an axis.
void OnnxLowering::gather(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const int axis = axis_of(node.whole("axis", 0), x.rank());
  const Known* index = known(name(1));
  std::vector<int64_t> dims = dims_of(x);
  dims.erase(dims.begin() + axis);
  const Shape ids = shape(name(1));
  dims.insert(dims.begin() + axis, ids.dims().begin(), ids.dims().end());
  if (index != nullptr) {
    std::vector<int64_t> places = index->wholes();
    for (int64_t& at : places) at = at < 0 ? at + x[axis] : at;
    reshaped(picked(as_value(name(0)), axis, places), as_shape(dims), node.out[0]);
    return;
  }
  // Of another axis than the first, or of more than a table: rows of all that lies behind a place.
  std::vector<int64_t> axes = {axis};
  for (int at = 0; at < x.rank(); ++at) {
    if (at != axis) axes.push_back(at);
  }
  const std::string front = axis == 0 ? as_value(name(0)) : permuted(as_value(name(0)), axes);
  const Shape lying = shape(front);
  const std::string table =
      lying.rank() == 2 ? front : reshaped(front, {lying[0], lying.product(1, lying.rank())});
  if (axis == 0 && x.rank() == 2) return emit("embedding", {{table, {}}, operand(name(1))});
  const Operand rows = emitted("embedding", {{table, {}}, operand(name(1))});
  std::vector<int64_t> apart = dims_of(ids);
  for (int at = 1; at < lying.rank(); ++at) apart.push_back(lying[at]);
  const std::string y = reshaped(rows.value, as_shape(apart));
  if (axis == 0) return l_.alias(node.out[0], y);
  std::vector<int64_t> order;  // what was in front of the axis, the places, what was behind
  for (int at = 0; at < axis; ++at) order.push_back(ids.rank() + at);
  for (int at = 0; at < ids.rank(); ++at) order.push_back(at);
  for (int at = axis; at + 1 < x.rank(); ++at) order.push_back(ids.rank() + at);
  permuted(y, order, node.out[0]);
}

// Slices of the first tensor by known numbers of their first `axes` places, which are one list: all of them in
// order as they are, else rows of a table.
void OnnxLowering::take(const Known& places, int axes, const Shape& result) {
  const Shape x = shape(name(0));
  const int64_t count = x.product(0, axes), width = x.product(axes, x.rank());
  std::vector<int64_t> ids = places.wholes();
  bool in_order = std::ssize(ids) == count;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) ids[i] += count;
    user_check(ids[i] >= 0 && ids[i] < count, "there is no place {} of {}", ids[i], count);
    in_order = in_order && ids[i] == static_cast<int64_t>(i);
  }
  if (in_order) {
    reshaped(name(0), result, node_->out[0]);
    return;
  }
  const std::string table = reshaped(name(0), {count, width});
  const std::string numbers = constant_of(known_list(ids), fresh());
  const std::string rows = emit_as("embedding", {{table, {}}, {numbers, {}}}, fresh());
  reshaped(rows, result, node_->out[0]);
}

// The first axes of x as one, and the places in it that the last axis of `given` names.
std::vector<int64_t> OnnxLowering::flat_places(const Known& given, const Shape& x) const {
  const int64_t axes = given.shape.rank() > 0 ? given.shape.back() : 0;
  user_check(axes >= 1 && axes <= x.rank(), "{} names no places of {}", to_string(given.shape),
             to_string(x));
  const std::vector<int64_t> all = given.wholes();
  std::vector<int64_t> ids;
  for (size_t i = 0; i < all.size(); i += static_cast<size_t>(axes)) {
    int64_t at = 0;
    for (int64_t k = 0; k < axes; ++k) {
      const int64_t extent = x[static_cast<int>(k)], one = all[i + static_cast<size_t>(k)];
      user_check(one >= -extent && one < extent, "there is no place {} of {}", one, extent);
      at = at * extent + (one < 0 ? one + extent : one);
    }
    ids.push_back(at);
  }
  return ids;
}

// Slices by the places of their first axes, the last axis of known numbers.
void OnnxLowering::gather_by_places(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const Known& given = known_in(1);
  user_check(node.whole("batch_dims", 0) == 0, "it gathers for each of a batch");
  const std::vector<int64_t> ids = flat_places(given, x);
  const auto axes = static_cast<int>(given.shape.back());
  std::vector<int64_t> dims = dims_of(given.shape);
  dims.pop_back();
  for (int axis = axes; axis < x.rank(); ++axis) dims.push_back(x[axis]);
  take(known_list(ids), axes, as_shape(dims));
}

}  // namespace thimble
