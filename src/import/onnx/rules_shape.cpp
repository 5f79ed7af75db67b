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
    emit("permute", {operand(name(0))}, {{"axes", node.wholes("perm", reversed)}});
  } else if (node.op == "Concat") {
    std::vector<Operand> parts;
    for (size_t i = 0; i < node.in.size(); ++i) parts.push_back(operand(name(i)));
    emit("concat", parts,
         {{"axis", int64_t{axis_of(node.whole("axis", 0), shape(name(0)).rank())}}});
  } else if (node.op == "Expand") {
    const Shape to = as_shape(known_in(1).wholes());
    emit("expand", {operand(name(0))}, {}, broadcast(shape(name(0)), to, "Expand"));
  } else if (node.op == "Slice") {
    slice(node);
  } else if (node.op == "Split") {
    const Shape x = shape(name(0));
    const int axis = axis_of(node.whole("axis", 0), x.rank());
    std::vector<int64_t> sizes = has(1) ? known_in(1).wholes() : node.wholes("split", {});
    const int64_t count = std::ssize(node.out);
    if (sizes.empty()) sizes.assign(node.out.size(), (x[axis] + count - 1) / count);
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
    const Shape x = shape(name(0));
    const std::vector<int64_t> pads = has(1) ? known_in(1).wholes() : node.wholes("pads", {});
    user_check(node.text("mode", "constant") == "constant" && std::ssize(pads) == 2 * x.rank(),
               "only constants on both sides of every axis can be padded with");
    const double value = has(2) ? known_in(2).numbers.at(0) : 0;
    std::string at = name(0);
    for (int axis = 0; axis < x.rank(); ++axis) {
      const int64_t before = pads[static_cast<size_t>(axis)];
      const int64_t behind = pads[static_cast<size_t>(axis + x.rank())];
      if (before == 0 && behind == 0) continue;
      at = emit_as(
          "pad", {{at, {}}}, fresh(),
          {{"axis", int64_t{axis}}, {"before", before}, {"behind", behind}, {"value", value}});
    }
    l_.alias(node.out[0], at);
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
    user_check(step >= 1, "it goes backwards");
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

// A table's rows by ids, or one place of an axis.
void OnnxLowering::gather(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const int axis = axis_of(node.whole("axis", 0), x.rank());
  const Known* index = known(name(1));
  if (index != nullptr && index->elements() == 1) {
    const int64_t given = index->wholes()[0], at = given < 0 ? given + x[axis] : given;
    std::vector<int64_t> dims(x.dims().begin(), x.dims().end());
    dims.erase(dims.begin() + axis);
    dims.insert(dims.begin() + axis, index->shape.dims().begin(), index->shape.dims().end());
    reshaped(part(name(0), axis, at, at + 1), as_shape(dims), node.out[0]);
    return;
  }
  if (index == nullptr) {
    user_check(axis == 0 && x.rank() == 2, "it gathers from other than the rows of a table");
    return emit("embedding", {operand(name(0)), operand(name(1))});
  }
  user_check(axis == 0, "it gathers several places of another axis than the first");
  std::vector<int64_t> dims = dims_of(index->shape);
  for (int rest = 1; rest < x.rank(); ++rest) dims.push_back(x[rest]);
  take(*index, 1, as_shape(dims));
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
