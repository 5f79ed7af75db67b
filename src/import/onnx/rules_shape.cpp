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

// Without the axes (without any: without all of extent 1), or with axes of extent 1 there.
std::vector<int64_t> squeezed(const Shape& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> dims = dims_of(x);
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const bool named = std::ranges::find(axes, axis) != axes.end();
    if (named || (axes.empty() && x[axis] == 1)) dims.erase(dims.begin() + axis);
  }
  return dims;
}
std::vector<int64_t> unsqueezed(const Shape& x, std::vector<int64_t> axes) {
  std::vector<int64_t> dims = dims_of(x);
  std::ranges::sort(axes);
  for (const int64_t axis : axes) {
    user_check(axis <= std::ssize(dims), "it leaves a gap between axes");
    dims.insert(dims.begin() + axis, 1);
  }
  return dims;
}

}  // namespace

bool OnnxLowering::lower_shape(const OnnxNode& node) {
  if (const std::optional<Shape> made = shape_made(node)) {
    if (const Known* numbers = known(name(0))) {
      user_check(made->elements() == numbers->elements(), "{} and {} differ in size",
                 to_string(numbers->shape), to_string(*made));
      set_known({*made, numbers->numbers, numbers->whole});
    } else {
      reshaped(name(0), *made, node.out[0]);
    }
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
    split(node);
  } else if (node.op == "SplitToSequence") {
    split_to_sequence(node);
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
    tile(node);
  } else if (node.op == "DepthToSpace" || node.op == "SpaceToDepth") {
    move_blocks(node);
  } else if (node.op == "Gather") {
    gather(node);
  } else if (node.op == "GatherND") {
    gather_by_places(node);
  } else {
    return false;
  }
  return true;
}

// The shape that a node gives to the same numbers in the same order; none: it does something else.
std::optional<Shape> OnnxLowering::shape_made(const OnnxNode& node) {
  if (node.op == "Reshape") {
    return shape_asked(shape(name(0)), known_in(1).wholes(), node.whole("allowzero", 0) != 0);
  }
  if (node.op == "Flatten") {
    const Shape x = shape(name(0));
    const int64_t given = node.whole("axis", 1);
    const int axis = given == x.rank() ? x.rank() : axis_of(given, x.rank());
    return Shape{x.product(0, axis), x.product(axis, x.rank())};
  }
  if (node.op != "Squeeze" && node.op != "Unsqueeze") return std::nullopt;
  const Shape x = shape(name(0));
  std::vector<int64_t> axes = axes_of(1);
  const int rank = x.rank() + (node.op == "Unsqueeze" ? static_cast<int>(axes.size()) : 0);
  for (int64_t& axis : axes) axis = axis_of(axis, rank);
  return as_shape(node.op == "Squeeze" ? squeezed(x, axes) : unsqueezed(x, std::move(axes)));
}

void OnnxLowering::split(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const int axis = axis_of(node.whole("axis", 0), x.rank());
  std::vector<int64_t> sizes = has(1) ? known_in(1).wholes() : node.wholes("split", {});
  const int64_t count = std::ssize(node.out);
  if (sizes.empty()) sizes.assign(node.out.size(), (x[axis] + count - 1) / count);
  std::optional<Known> whole;
  if (const Known* numbers = known(name(0))) whole = *numbers;
  int64_t begin = 0;
  for (size_t i = 0; i < node.out.size(); ++i) {
    const int64_t end = std::min(x[axis], begin + sizes.at(i));
    if (whole) {
      known_[node.out[i]] = sliced(*whole, axis, begin, end, 1);
    } else {
      part(name(0), axis, begin, end, node.out[i]);
    }
    begin = end;
  }
}

void OnnxLowering::split_to_sequence(const OnnxNode& node) {
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
}

void OnnxLowering::tile(const OnnxNode& node) {
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
}

// DepthToSpace and SpaceToDepth: blocks of pixels become channels, or the other way round.
void OnnxLowering::move_blocks(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const int64_t b = node.whole("blocksize", 1);
  user_check(x.rank() == 4 && b >= 1 && b <= 1024, "it takes blocks of {} of {}", b, to_string(x));
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

}  // namespace thimble
