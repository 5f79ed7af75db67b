// Places, running sums and random numbers.
#include <algorithm>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Axes with `axis` as the last; the way back is the same list turned round.
std::vector<int64_t> with_last(int rank, int axis) {
  std::vector<int64_t> axes;
  for (int at = 0; at < rank; ++at) {
    if (at != axis) axes.push_back(at);
  }
  axes.push_back(axis);
  return axes;
}

std::vector<int64_t> back_from(const std::vector<int64_t>& axes) {
  std::vector<int64_t> back(axes.size());
  for (size_t at = 0; at < axes.size(); ++at) {
    back[static_cast<size_t>(axes[at])] = static_cast<int64_t>(at);
  }
  return back;
}

std::string_view reduction_of(const OnnxNode& node) {
  const std::string_view reduction = node.text("reduction", "none");
  user_check(reduction == "none" || reduction == "add", "it scatters by '{}'; add can be",
             reduction);
  return reduction;
}

}  // namespace

// As a value, whether or not its numbers are known.
std::string OnnxLowering::value_of(size_t i) {
  const Known* numbers = known(name(i));
  return numbers == nullptr ? name(i) : constant_of(*numbers, "known." + name(i));
}

bool OnnxLowering::lower_places(const OnnxNode& node) {
  if (node.op == "GatherElements" || node.op == "ScatterElements") {
    along(node);
  } else if (node.op == "ScatterND") {
    scatter_by_places(node);
  } else if (node.op == "CumSum") {
    running_sum(node);
  } else if (node.op.starts_with("Random") || node.op == "Bernoulli") {
    draw(node);
  } else {
    return false;
  }
  return true;
}

void OnnxLowering::along(const OnnxNode& node) {
  const Shape x = shape(name(0)), index = shape(name(1));
  const int axis = axis_of(node.whole("axis", 0), x.rank());
  user_check(x.rank() == index.rank() && x.rank() > 0, "it has places {} of {}", to_string(index),
             to_string(x));
  const std::vector<int64_t> axes = with_last(x.rank(), axis);
  const auto turned = [&](std::string from) {
    for (int at = 0; at < x.rank(); ++at) {
      const int64_t extent = shape(from)[at];
      user_check(index[at] <= extent || at == axis, "{} reaches beyond {}", to_string(index),
                 to_string(x));
      if (at != axis && index[at] < extent) from = part(from, at, 0, index[at]);
    }
    return emit_as("permute", {{from, {}}}, fresh(), {{"axes", axes}});
  };
  const std::string values = value_of(0), places = turned(value_of(1));
  std::string made;
  if (node.op == "GatherElements") {
    made = emit_as("take_along", {{turned(values), {}}, {places, {}}}, fresh());
  } else {
    for (int at = 0; at < x.rank(); ++at) {
      user_check(at == axis || index[at] == x[at], "it scatters to a part of {} by places {}",
                 to_string(x), to_string(index));
    }
    const bool adds = reduction_of(node) == "add";
    const std::string source = turned(value_of(2)), base = turned(values);
    if (adds) {
      const std::string sums =
          emit_as("add_along", {{source, {}}, {places, {}}}, fresh(), {{"width", x[axis]}});
      made = emit_as("add", {{base, {}}, {sums, {}}}, fresh());
    } else {
      made = emit_as("put_along", {{base, {}}, {places, {}}, {source, {}}}, fresh());
    }
  }
  emit("permute", {{made, {}}}, {{"axes", back_from(axes)}});
}

// Slices of the first axes, by places that are known.
void OnnxLowering::scatter_by_places(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const Known& given = known_in(1);
  const int64_t axes = given.shape.rank() > 0 ? given.shape.back() : 0;
  const std::vector<int64_t> ids = flat_places(given, x);
  const auto count = std::ssize(ids);
  const int64_t extent = x.product(0, static_cast<int>(axes));
  const int64_t width = x.product(static_cast<int>(axes), x.rank());
  const std::string base = reshaped(value_of(0), {extent, width});
  const std::string source = reshaped(value_of(2), {count, width});
  if (reduction_of(node) == "add") {
    const std::string numbers = constant_of(known_list(ids), fresh());
    const std::string sums =
        emit_as("add_rows", {{source, {}}, {numbers, {}}}, fresh(), {{"rows", extent}});
    reshaped(emit_as("add", {{base, {}}, {sums, {}}}, fresh()), x, node.out[0]);
    return;
  }
  // The last of several counts.
  std::vector<int64_t> of(static_cast<size_t>(extent), -1);
  for (size_t i = 0; i < ids.size(); ++i) of[static_cast<size_t>(ids[i])] = static_cast<int64_t>(i);
  for (size_t at = 0; at < of.size(); ++at) {
    of[at] = of[at] < 0 ? static_cast<int64_t>(at) : extent + of[at];
  }
  const std::string both =
      emit_as("concat", {{base, {}}, {source, {}}}, fresh(), {{"axis", int64_t{0}}});
  const std::string numbers = constant_of(known_list(of), fresh());
  reshaped(emit_as("embedding", {{both, {}}, {numbers, {}}}, fresh()), x, node.out[0]);
}

// A product with a triangle of ones.
void OnnxLowering::running_sum(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const int axis = axis_of(known_in(1).wholes().at(0), x.rank());
  const bool reverse = node.whole("reverse", 0) != 0, exclusive = node.whole("exclusive", 0) != 0;
  const int64_t extent = x[axis];
  user_check(extent <= 4096, "it sums up {} numbers; 4096 are the most", extent);
  Known ones = filled({extent, extent}, 0, false);
  for (int64_t from = 0; from < extent; ++from) {
    for (int64_t to = 0; to < extent; ++to) {
      const bool before = reverse ? from > to : from < to;
      ones.numbers[static_cast<size_t>(from * extent + to)] =
          before || (from == to && !exclusive) ? 1 : 0;
    }
  }
  const std::string triangle = constant_of(ones, fresh());
  const std::vector<int64_t> axes = with_last(x.rank(), axis);
  const std::string turned = emit_as("permute", {operand(name(0))}, fresh(), {{"axes", axes}});
  const std::string flat = reshaped(turned, {x.elements() / std::max<int64_t>(1, extent), extent});
  const std::string sums = emit_as("matmul", {{flat, {}}, {triangle, {}}}, fresh(), {},
                                   Shape{x.elements() / std::max<int64_t>(1, extent), extent});
  std::vector<int64_t> dims;
  for (const int64_t at : axes) dims.push_back(x[static_cast<int>(at)]);
  emit("permute", {{reshaped(sums, as_shape(dims)), {}}}, {{"axes", back_from(axes)}});
}

void OnnxLowering::draw(const OnnxNode& node) {
  const bool like = node.op.ends_with("Like"), bernoulli = node.op == "Bernoulli";
  const Shape to = like || bernoulli ? shape(name(0)) : as_shape(node.wholes("shape", {}));
  const bool normal = node.op.starts_with("RandomNormal");
  const std::string drawn =
      emit_as("random", {}, fresh(), {{"kind", std::string(normal ? "normal" : "uniform")}}, to);
  if (bernoulli)
    return emit("cast", {{emit_as("lt", {{drawn, {}}, operand(name(0))}, fresh()), {}}});
  const double low = node.real("low", 0), high = node.real("high", 1);
  const double scale = normal ? node.real("scale", 1) : high - low;
  const std::string wide = emit_as("mul", {{drawn, {}}, {"", scale}}, fresh());
  emit("add", {{wide, {}}, {"", normal ? node.real("mean", 0) : low}});
}

}  // namespace thimble
