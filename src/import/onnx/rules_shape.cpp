// Nodes that move numbers around.
#include <algorithm>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// 0 is the extent that is there, -1 what is left.
Shape shape_asked(const Shape& from, const std::vector<int64_t>& asked, bool zeros_stay) {
  std::vector<int64_t> dims = asked;
  int64_t open = -1, product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zeros_stay) {
      user_check(static_cast<int>(i) < from.rank(), "it keeps an axis that is not there");
      dims[i] = from[static_cast<int>(i)];
    }
    if (dims[i] == -1) {
      user_check(open < 0, "it leaves two axes open");
      open = static_cast<int64_t>(i);
    } else {
      user_check(dims[i] >= 0 && !__builtin_mul_overflow(product, dims[i], &product),
                 "it wants an axis of {}", dims[i]);
    }
  }
  if (open >= 0) dims[static_cast<size_t>(open)] = product == 0 ? 0 : from.elements() / product;
  return as_shape(dims);
}

}  // namespace

bool OnnxLowering::lower_shape(const OnnxNode& node) {
  const auto set_shape = [&](const Shape& to) {
    if (const Known* numbers = known(name(0))) {
      user_check(to.elements() == numbers->elements(), "{} and {} differ in size",
                 to_string(numbers->shape), to_string(to));
      return set_known({to, numbers->numbers, numbers->whole});
    }
    reshaped(name(0), to, node.out[0]);
  };
  if (node.op == "Reshape") {
    set_shape(shape_asked(shape(name(0)), known_in(1).wholes(), node.whole("allowzero", 0) != 0));
  } else if (node.op == "Flatten") {
    const Shape x = shape(name(0));
    const int64_t given = node.whole("axis", 1);
    const int axis = given == x.rank() ? x.rank() : axis_of(given, x.rank());
    set_shape({x.product(0, axis), x.product(axis, x.rank())});
  } else if (node.op == "Squeeze" || node.op == "Unsqueeze") {
    const Shape x = shape(name(0));
    std::vector<int64_t> dims(x.dims().begin(), x.dims().end()), axes = axes_of(1);
    const int rank = x.rank() + (node.op == "Unsqueeze" ? static_cast<int>(axes.size()) : 0);
    for (int64_t& axis : axes) axis = axis_of(axis, rank);
    std::ranges::sort(axes);
    if (node.op == "Unsqueeze") {
      for (const int64_t axis : axes) {
        user_check(axis <= std::ssize(dims), "it leaves a gap between axes");
        dims.insert(dims.begin() + axis, 1);
      }
    } else {
      for (int axis = rank - 1; axis >= 0; --axis) {
        const bool named = std::ranges::find(axes, axis) != axes.end();
        if (named || (axes.empty() && x[axis] == 1)) dims.erase(dims.begin() + axis);
      }
    }
    set_shape(as_shape(dims));
  } else if (node.op == "Transpose") {
    const int rank = shape(name(0)).rank();
    std::vector<int64_t> reversed;
    for (int axis = rank; axis-- > 0;) reversed.push_back(axis);
    permuted(as_value(name(0)), node.wholes("perm", reversed), node.out[0]);
  } else if (node.op == "Concat") {
    std::vector<Operand> parts;
    for (size_t i = 0; i < node.in.size(); ++i) parts.push_back({as_value(name(i)), {}});
    emit("concat", parts,
         {{"axis", int64_t{axis_of(node.whole("axis", 0), shape(name(0)).rank())}}});
  } else if (node.op == "Expand") {
    const Shape to = as_shape(known_in(1).wholes());
    emit("expand", {{as_value(name(0)), {}}}, {}, broadcast(shape(name(0)), to, "Expand"));
  } else if (node.op == "Slice") {
    slice(node);
  } else if (node.op == "Split") {
    const Shape x = shape(name(0));
    const int axis = axis_of(node.whole("axis", 0), x.rank());
    std::vector<int64_t> sizes = has(1) ? known_in(1).wholes() : node.wholes("split", {});
    const int64_t count = std::ssize(node.out);
    if (sizes.empty()) sizes.assign(node.out.size(), (x[axis] + count - 1) / count);
    if (const Known* all = known(name(0))) {
      const Known whole = *all;
      for (int64_t i = 0, at = 0; i < count; ++i) {
        const int64_t end = std::min(x[axis], at + sizes.at(static_cast<size_t>(i)));
        known_[node.out[static_cast<size_t>(i)]] = sliced(whole, axis, at, end, 1);
        at = end;
      }
      return true;
    }
    int64_t begin = 0;
    for (size_t i = 0; i < node.out.size(); ++i) {
      const int64_t end = std::min(x[axis], begin + sizes.at(i));
      part(name(0), axis, begin, end, node.out[i]);
      begin = end;
    }
  } else if (node.op == "SplitToSequence") {
    const Shape x = shape(name(0));
    const int axis = axis_of(node.whole("axis", 0), x.rank());
    const Known& sizes = known_in(1);
    int64_t begin = 0;
    for (size_t i = 0; begin < x[axis]; ++i) {
      const int64_t size = sizes.wholes().at(sizes.shape.rank() == 0 ? 0 : i);
      user_check(size >= 1 && i < 4096, "it splits into parts of {}", size);
      const int64_t end = std::min(x[axis], begin + std::min(size, x[axis]));
      sequences_[node.out[0]].push_back(part(name(0), axis, begin, end));
      begin = end;
    }
  } else if (node.op == "SequenceAt") {
    const auto sequence = sequences_.find(name(0));
    const int64_t given = known_in(1).wholes().at(0);
    user_check(sequence != sequences_.end(), "it reads no sequence that was split here");
    const int64_t count = std::ssize(sequence->second), at = given < 0 ? given + count : given;
    user_check(at >= 0 && at < count, "there is no part {} of {}", given, count);
    l_.alias(node.out[0], sequence->second[static_cast<size_t>(at)]);
  } else if (node.op == "Pad") {
    pad(node);
  } else if (node.op == "Tile") {
    const std::vector<int64_t> times = known_in(1).wholes();
    const Shape x = shape(name(0));
    user_check(std::ssize(times) == x.rank(), "it repeats {} of {} axes", times.size(), x.rank());
    std::string y = as_value(name(0));
    for (int axis = 0; axis < x.rank(); ++axis) {
      const int64_t count = times[static_cast<size_t>(axis)];
      user_check(count >= 1 && count <= 4096, "it repeats an axis {} times", count);
      if (count == 1) continue;
      const std::vector<Operand> parts(static_cast<size_t>(count), {y, {}});
      y = emitted("concat", parts, {{"axis", int64_t{axis}}}).value;
    }
    l_.alias(node.out[0], y);
  } else if (node.op == "DepthToSpace" || node.op == "SpaceToDepth") {
    const Shape x = shape(name(0));
    const int64_t b = node.whole("blocksize", 1);
    user_check(x.rank() == 4 && b >= 1 && b <= 1024, "it takes blocks of {} of {}", b,
               to_string(x));
    std::vector<int64_t> dims;
    std::string y;
    if (node.op == "DepthToSpace") {
      user_check(x[1] % (b * b) == 0, "{} channels are no blocks of {}", x[1], b);
      const int64_t c = x[1] / (b * b);
      const bool blocks_first = node.text("mode", "DCR") == "DCR";
      y = reshaped(name(0), blocks_first ? Shape{x[0], b, b, c, x[2], x[3]}
                                         : Shape{x[0], c, b, b, x[2], x[3]});
      y = permuted(y, blocks_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                                   : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
      dims = {x[0], c, x[2] * b, x[3] * b};
    } else {
      user_check(x[2] % b == 0 && x[3] % b == 0, "{} is no blocks of {}", to_string(x), b);
      y = reshaped(name(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
      y = permuted(y, {0, 3, 5, 1, 2, 4});
      dims = {x[0], x[1] * b * b, x[2] / b, x[3] / b};
    }
    reshaped(y, as_shape(dims), node.out[0]);
  } else if (node.op == "Gather") {
    gather(node);
  } else if (node.op == "GatherND") {
    gather_by_places(node);
  } else {
    return false;
  }
  return true;
}

void OnnxLowering::slice(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const std::vector<int64_t> begins = has(1) ? known_in(1).wholes() : node.wholes("starts", {});
  const std::vector<int64_t> ends = has(2) ? known_in(2).wholes() : node.wholes("ends", {});
  std::vector<int64_t> axes = has(3) ? known_in(3).wholes() : node.wholes("axes", {});
  const std::vector<int64_t> steps = has(4) ? known_in(4).wholes() : std::vector<int64_t>{};
  user_check(begins.size() == ends.size(), "it has as many starts as ends");
  std::string at = name(0);
  for (size_t i = 0; i < begins.size(); ++i) {
    const int axis = axis_of(i < axes.size() ? axes[i] : static_cast<int64_t>(i), x.rank());
    const int64_t extent = x[axis], step = i < steps.size() ? steps[i] : 1;
    if (step < 0) {
      const auto from = [&](int64_t p) {
        return std::clamp<int64_t>(p < -extent ? -1 : p < 0 ? p + extent : p, -1, extent - 1);
      };
      std::vector<int64_t> places;
      const int64_t last = ends[i] <= INT64_MIN / 2 ? -1 : from(ends[i]);
      for (int64_t p = from(begins[i]); p > last; p += step) places.push_back(p);
      at = picked(at, axis, places);
      continue;
    }
    user_check(step >= 1, "it goes by steps of 0");
    const auto place = [&](int64_t p) {
      return std::clamp<int64_t>(p < 0 ? p + extent : p, 0, extent);
    };
    const int64_t begin = place(begins[i]), end = place(ends[i]);
    if (begin == 0 && end == extent && step == 1) continue;
    at = emit_as("slice", {{at, {}}}, fresh(),
                 {{"axis", int64_t{axis}}, {"begin", begin}, {"end", end}, {"step", step}});
  }
  l_.alias(node.out[0], at);
}

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

void OnnxLowering::pad(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const std::vector<int64_t> given = has(1) ? known_in(1).wholes() : node.wholes("pads", {});
  std::vector<int64_t> axes = has(3) ? known_in(3).wholes() : std::vector<int64_t>{};
  for (int axis = 0; axes.empty() && axis < x.rank(); ++axis) {
    axes.resize(static_cast<size_t>(x.rank()));
    for (int k = 0; k < x.rank(); ++k) axes[static_cast<size_t>(k)] = k;
  }
  const std::string_view mode = node.text("mode", "constant");
  user_check(given.size() == 2 * axes.size(), "it pads {} axes of {}", given.size(), x.rank());
  const double value = has(2) ? known_in(2).numbers.at(0) : node.real("value", 0);
  std::string y = as_value(name(0));
  for (size_t a = 0; a < axes.size(); ++a) {
    const int axis = axis_of(axes[a], x.rank());
    const int64_t before = given[a], behind = given[a + axes.size()], extent = x[axis];
    if (before == 0 && behind == 0) continue;
    if (mode == "constant") {
      y = padded(y, axis, before, behind, value);
      continue;
    }
    user_check(mode == "reflect" || mode == "edge" || mode == "wrap", "it pads by '{}'", mode);
    user_check(before > -extent && behind > -extent && before < 1 << 24 && behind < 1 << 24 &&
                   (mode != "reflect" || (before < extent && behind < extent)),
               "it pads {} by {} and {}", extent, before, behind);
    std::vector<int64_t> places;
    for (int64_t at = -before; at < extent + behind; ++at) {
      const int64_t mirrored = at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at;
      places.push_back(mode == "reflect" ? mirrored
                       : mode == "edge"  ? std::clamp<int64_t>(at, 0, extent - 1)
                                         : ((at % extent) + extent) % extent);
    }
    y = picked(y, axis, places);
  }
  l_.alias(node.out[0], y);
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
