// Ops that move numbers around.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/lowering.h"

namespace thimble {
namespace {

void reshape(Lowering& l, const NetNode& node) {
  l.set(node, reshape_permuted(l.b(), l.in(node, 0), l.stated(node)));
}

// Nothing moves: the axes of the same value have other names from here on.
void permute(Lowering& l, const NetNode& node) {
  const PermutedTensor x = l.in(node, 0);
  const std::vector<int64_t>& axes = wholes_of(node, "axes", x.order.size());
  Order becomes(axes.size(), -1);  // by axis of x: of the result
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool fine =
        axes[k] >= 0 && axes[k] < std::ssize(axes) && becomes[static_cast<size_t>(axes[k])] < 0;
    user_check(fine, "it does not name each of {} axes once", axes.size());
    becomes[static_cast<size_t>(axes[k])] = static_cast<int>(k);
  }
  Order order;
  for (const int axis : x.order) order.push_back(becomes[static_cast<size_t>(axis)]);
  l.set(node, {x.value, order});
}

void expand(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = l.in(node, 0);
  const Shape shape = l.stated(node);
  user_check(shape.rank() >= static_cast<int>(x.order.size()), "it would lose axes");
  const int missing = shape.rank() - static_cast<int>(x.order.size());
  std::vector<int64_t> from(static_cast<size_t>(missing), 1), dims;
  Order order = plain_order(missing);
  for (int axis = 0; axis < missing; ++axis) dims.push_back(shape[axis]);
  for (size_t k = 0; k < x.order.size(); ++k) {
    const int axis = x.order[k] + missing;
    from.push_back(b.shape(x.value)[static_cast<int>(k)]);
    dims.push_back(shape[axis]);
    order.push_back(axis);
  }
  ValueId value = reshaped(b, x.value, from);
  const Shape wanted{std::span<const int64_t>(dims)};
  if (b.shape(value) != wanted && is_floating(b.type(value).dtype)) {
    value = b.op("broadcast_to", {value}, {{"shape", dims}});
  }
  // Whole numbers are repeated axis by axis.
  for (int axis = 0; axis < wanted.rank() && b.shape(value) != wanted; ++axis) {
    const int64_t times = wanted[axis];
    if (b.shape(value)[axis] == times) continue;
    user_check(b.shape(value)[axis] == 1 && times >= 1 && times <= 4096, "{} does not repeat to {}",
               to_string(b.shape(value)), to_string(wanted));
    value = b.op("concat", std::vector<ValueId>(static_cast<size_t>(times), value),
                 {{"axis", int64_t{axis}}});
  }
  l.set(node, {value, order});
}

ValueId part(Builder& b, ValueId x, int axis, int64_t begin, int64_t end) {
  if (begin == 0 && end == b.shape(x)[axis]) return x;
  return b.op("slice", {x}, {{"axis", int64_t{axis}}, {"begin", begin}, {"end", end}});
}

// Zeros around a part of an axis.
ValueId padded(Builder& b, ValueId x, int axis, int64_t before, int64_t behind) {
  if (before == 0 && behind == 0) return x;
  return b.op(
      "slice_backward", {x},
      {{"axis", int64_t{axis}}, {"begin", before}, {"extent", before + b.shape(x)[axis] + behind}});
}

// Every step-th of [begin, end): the first column of rows of `step`.
void slice(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = l.in(node, 0);
  const int axis = place_of(x.order, axis_in(node, "axis", static_cast<int>(x.order.size())));
  const int64_t begin = whole_of(node, "begin"), end = whole_of(node, "end");
  const int64_t step = node.attrs.has("step") ? whole_of(node, "step") : 1;
  const int64_t extent = b.shape(x.value)[axis];
  user_check(begin >= 0 && begin < end && end <= extent && step >= 1,
             "[{}, {}) by {} is no part of {}", begin, end, step, extent);
  if (step == 1) return l.set(node, {part(b, x.value, axis, begin, end), x.order});
  const int64_t count = (end - begin + step - 1) / step, reach = begin + count * step;
  user_check(x.order.size() < Shape::kMaxRank, "it has too many axes for steps");
  ValueId value = x.value;
  if (reach > extent) value = padded(b, value, axis, 0, reach - extent);
  value = part(b, value, axis, begin, reach);
  std::vector<int64_t> dims = dims_of(b.shape(value)), apart = dims;
  apart[static_cast<size_t>(axis)] = count;
  apart.insert(apart.begin() + axis + 1, step);
  dims[static_cast<size_t>(axis)] = count;
  value = part(b, reshaped(b, value, apart), axis + 1, 0, 1);
  l.set(node, {reshaped(b, value, dims), x.order});
}

void concat(Lowering& l, const NetNode& node) {
  user_check(!node.in.empty(), "it joins nothing");
  Builder& b = l.b();
  std::vector<PermutedTensor> parts;
  bool floating =
      false;  // as whole numbers that were computed are, which may stand beside fed ones
  for (size_t i = 0; i < node.in.size(); ++i) {
    parts.push_back(l.in(node, i));
    floating |= is_floating(b.type(parts.back().value).dtype);
  }
  for (size_t i = 0; i < node.in.size() && floating; ++i) parts[i] = l.stored_in(node, i);
  const auto largest = std::ranges::max_element(
      parts, {}, [&](const PermutedTensor& x) { return b.type(x.value).elements(); });
  const Order order = largest->order;
  const int axis = place_of(order, axis_in(node, "axis", static_cast<int>(order.size())));
  std::vector<ValueId> values;
  for (const PermutedTensor& x : parts) {
    user_check(x.order.size() == order.size(), "its parts have different numbers of axes");
    values.push_back(in_order(b, x, order));
  }
  l.set(node, {values.size() == 1 ? values[0] : b.op("concat", values, {{"axis", int64_t{axis}}}),
               order});
}

void pad(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const PermutedTensor x = l.in(node, 0);
  const int axis = place_of(x.order, axis_in(node, "axis", static_cast<int>(x.order.size())));
  const int64_t before = whole_of(node, "before"), behind = whole_of(node, "behind");
  constexpr int64_t kMost = int64_t{1} << 30;
  user_check(before >= 0 && behind >= 0 && before <= kMost && behind <= kMost,
             "it pads by {} and {}", before, behind);
  const double number = real_of(node, "value", 0);
  const TensorType type = b.type(x.value);
  if (number == 0 && is_floating(type.dtype)) {
    return l.set(node, {padded(b, x.value, axis, before, behind), x.order});
  }
  std::vector<ValueId> parts;
  const auto add = [&](int64_t extent) {
    if (extent == 0) return;
    std::vector<int64_t> dims = dims_of(type.shape);
    dims[static_cast<size_t>(axis)] = extent;
    parts.push_back(b.constant(number, {Shape(std::span<const int64_t>(dims)), type.dtype}));
  };
  add(before);
  parts.push_back(x.value);
  add(behind);
  l.set(node,
        {parts.size() == 1 ? x.value : b.op("concat", parts, {{"axis", int64_t{axis}}}), x.order});
}

// Numbers that move: floating ones in the type of activations, whole ones as they are.
ValueId moved(Lowering& l, const NetNode& node, size_t i) {
  const bool floating = is_floating(l.b().type(l.in(node, i).value).dtype);
  return plain(l.b(), floating || node.attrs.has("whole") ? l.stored_in(node, i) : l.in(node, i));
}

// All axes but the last become one.
ValueId as_matrix(Builder& b, ValueId x) {
  const Shape shape = b.shape(x);
  user_check(shape.rank() >= 1, "it wants a tensor with axes");
  return reshaped(b, x, {shape.product(0, shape.rank() - 1), shape.back()});
}

// x [...,C] and places [...,M], or two of [...,M], and a base [...,C] between them: of each row by itself.
void along(Lowering& l, const NetNode& node) {
  Builder& b = l.b();
  const ValueId x = moved(l, node, 0), places = l.numbers_in(node, 1);
  const Shape from = b.shape(x), at = b.shape(places);
  user_check(from.rank() == at.rank() && from.rank() >= 1, "it takes {} by places {}",
             to_string(from), to_string(at));
  std::vector<ValueId> inputs = {as_matrix(b, x), as_matrix(b, places)};
  Attrs attrs;
  std::vector<int64_t> dims = dims_of(node.op == "take_along" ? at : from);
  if (node.op == "add_along") attrs.set("width", dims.back() = whole_of(node, "width"));
  if (node.op == "put_along") inputs.push_back(as_matrix(b, moved(l, node, 2)));
  l.set_plain(node, reshaped(b, b.op(node.op, inputs, attrs), dims));
}

// Rows x [...,C] added up by their numbers [...]: the gradient of a table.
void add_rows(Lowering& l, const NetNode& node) {
  const ValueId x = l.stored(l.plain_in(node, 0)), numbers = l.numbers_in(node, 1);
  l.set_plain(node, l.b().op("embed_backward", {numbers, x}, {{"rows", whole_of(node, "rows")}}));
}

constexpr auto kRules = std::to_array<LoweringRule>({{"reshape", reshape},
                                                     {"permute", permute},
                                                     {"expand", expand},
                                                     {"slice", slice},
                                                     {"concat", concat},
                                                     {"pad", pad},
                                                     {"take_along", along},
                                                     {"add_along", along},
                                                     {"put_along", along},
                                                     {"add_rows", add_rows}});

}  // namespace

std::span<const LoweringRule> shape_rules() { return kRules; }

}  // namespace thimble
