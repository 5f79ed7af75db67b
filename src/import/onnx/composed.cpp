// Tensors made of several nodes of the vocabulary, for rules of more than one file.
#include <algorithm>
#include <numeric>

#include "import/onnx/onnx_lowering.h"

namespace thimble {

std::string OnnxLowering::as_value(const std::string& of) {
  const Known* numbers = known(of);
  return numbers == nullptr ? of : constant_of(*numbers, "known." + of);
}

std::string OnnxLowering::permuted(const std::string& x, const std::vector<int64_t>& axes,
                                   const std::string& out) {
  return emit_as("permute", {{x, {}}}, out.empty() ? fresh() : out, {{"axes", axes}});
}

std::string OnnxLowering::padded(const std::string& x, int axis, int64_t before, int64_t behind,
                                 double value) {
  std::string y = x;
  if (before < 0 || behind < 0) {  // cut off
    const int64_t extent = shape(x)[axis], begin = std::max<int64_t>(0, -before);
    const int64_t end = extent - std::max<int64_t>(0, -behind);
    user_check(begin < end, "it cuts {} and {} off {}", -before, -behind, extent);
    y = part(y, axis, begin, end);
  }
  before = std::max<int64_t>(0, before), behind = std::max<int64_t>(0, behind);
  if (before == 0 && behind == 0) return y;
  return emit_as(
      "pad", {{y, {}}}, fresh(),
      {{"axis", int64_t{axis}}, {"before", before}, {"behind", behind}, {"value", value}});
}

std::string OnnxLowering::stepped(const std::string& x, int axis, int64_t begin, int64_t end,
                                  int64_t step) {
  if (begin == 0 && end == shape(x)[axis] && step == 1) return x;
  return emit_as("slice", {{x, {}}}, fresh(),
                 {{"axis", int64_t{axis}}, {"begin", begin}, {"end", end}, {"step", step}});
}

std::string OnnxLowering::picked(const std::string& x, int axis, const std::vector<int64_t>& places,
                                 const std::string& out) {
  const Shape from = shape(x);
  const int64_t extent = from[axis];
  for (const int64_t at : places) {
    user_check(at >= 0 && at < extent, "there is no place {} of {}", at, extent);
  }
  user_check(!places.empty(), "it takes no place of an axis");
  const int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  bool even = step >= 1;
  for (size_t i = 1; i < places.size(); ++i) even = even && places[i] - places[i - 1] == step;
  if (even) {
    std::string y = stepped(x, axis, places.front(), places.back() + 1, step);
    if (!out.empty()) l_.alias(out, y);
    return y;
  }
  std::vector<int64_t> axes = {axis}, back(static_cast<size_t>(from.rank())), dims;
  for (int at = 0; at < from.rank(); ++at) {
    if (at != axis) axes.push_back(at);
  }
  for (size_t at = 0; at < axes.size(); ++at)
    back[static_cast<size_t>(axes[at])] = static_cast<int64_t>(at);
  const std::string front = permuted(x, axes);
  const Shape lying = shape(front);
  const std::string table = reshaped(front, {extent, lying.product(1, lying.rank())});
  const std::string numbers = constant_of(known_list(places), fresh());
  const std::string rows = emit_as("embedding", {{table, {}}, {numbers, {}}}, fresh());
  dims = dims_of(lying);
  dims[0] = std::ssize(places);
  return permuted(reshaped(rows, as_shape(dims)), back, out);
}

std::string OnnxLowering::chosen(const Operand& mask, const Operand& x, const Operand& y,
                                 std::string out) {
  const auto finite = [](Operand operand) {
    constexpr double kFar = 3.0e38;
    if (operand.number) operand.number = std::clamp(*operand.number, -kFar, kFar);
    return operand;
  };
  const Operand ones = emitted("cast", {mask});
  const Operand zeros = emitted("sub", {{"", 1.0}, ones});
  const auto share = [&](const Operand& of, const Operand& item) -> std::optional<Operand> {
    if (item.number && *item.number == 0) return std::nullopt;
    if (item.number && *item.number == 1) return of;
    return emitted("mul", {of, finite(item)});
  };
  const std::optional<Operand> first = share(ones, x), second = share(zeros, y);
  if (out.empty()) out = fresh();
  if (first && second) return emit_as("add", {*first, *second}, out);
  const Operand one = first ? *first : second ? *second : emitted("mul", {ones, {"", 0.0}});
  l_.alias(out, one.value);
  return out;
}

std::string OnnxLowering::larger(const Operand& x, const Operand& y, bool smaller,
                                 std::string out) {
  const Operand& number = x.number ? x : y;
  if (number.number) {
    const Operand& other = x.number ? y : x;
    return emit_as("clip", {other}, out.empty() ? fresh() : out,
                   {{smaller ? "high" : "low", *number.number}});
  }
  const Operand mask = emitted(smaller ? "lt" : "gt", {x, y});
  return chosen(mask, x, y, std::move(out));
}

std::string OnnxLowering::largest(const std::string& x, const std::vector<int64_t>& axes) {
  const Operand top = emitted("max", {{x, {}}}, {{"axes", axes}, {"keep", int64_t{1}}});
  const Operand those = emitted("cast", {emitted("eq", {{x, {}}, top})});
  const Attrs over = {{"axes", axes}, {"keep", int64_t{1}}};
  const Operand total = emitted("sum", {emitted("mul", {{x, {}}, those})}, over);
  return emitted("div", {total, emitted("sum", {those}, over)}).value;
}

std::string OnnxLowering::by_matrix(const std::string& x, int axis, const Known& matrix) {
  const Shape from = shape(x);
  std::vector<int64_t> axes(static_cast<size_t>(from.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const int last = from.rank() - 1;
  std::swap(axes[static_cast<size_t>(axis)], axes[static_cast<size_t>(last)]);
  const std::string turned = axis == last ? x : permuted(x, axes);
  std::vector<int64_t> dims = dims_of(shape(turned));
  dims.back() = matrix.shape[1];
  const std::string weights = constant_of(matrix, fresh());
  const std::string y =
      emit_as("matmul", {{turned, {}}, {weights, {}}}, fresh(), {}, as_shape(dims));
  return axis == last ? y : permuted(y, axes);
}

// By auto_pad, the windows go over so many places that every step is taken, with one more number
// behind (SAME_UPPER) or before (SAME_LOWER) where they cannot be alike.
OnnxLowering::Windows OnnxLowering::windows_of(const OnnxNode& node, const Shape& x,
                                               std::vector<int64_t> kernel) {
  const size_t axes = static_cast<size_t>(std::max(0, x.rank() - 2));
  user_check(axes >= 1 && kernel.size() == axes, "it has windows of {} axes over {}", kernel.size(),
             to_string(x));
  const std::vector<int64_t> ones(axes, 1);
  Windows w = {.kernel = std::move(kernel),
               .stride = node.wholes("strides", ones),
               .dilation = node.wholes("dilations", ones),
               .before = std::vector<int64_t>(axes, 0),
               .behind = std::vector<int64_t>(axes, 0)};
  const std::vector<int64_t> pads = node.wholes("pads", std::vector<int64_t>(2 * axes, 0));
  user_check(pads.size() == 2 * axes && w.stride.size() == axes && w.dilation.size() == axes,
             "its settings are not of {} axes", axes);
  const std::string_view automatic = node.text("auto_pad", "NOTSET");
  for (size_t a = 0; a < axes; ++a) {
    constexpr int64_t kMost = 1 << 20;
    const bool sane = w.kernel[a] >= 1 && w.kernel[a] <= kMost && w.stride[a] >= 1 &&
                      w.stride[a] <= kMost && w.dilation[a] >= 1 && w.dilation[a] <= kMost &&
                      std::abs(pads[a]) <= kMost && std::abs(pads[a + axes]) <= kMost;
    user_check(sane, "it has a window of {} by steps of {}", w.kernel[a], w.stride[a]);
    w.before[a] = pads[a], w.behind[a] = pads[a + axes];
    if (automatic == "NOTSET") continue;
    w.before[a] = w.behind[a] = 0;
    if (automatic == "VALID") continue;
    user_check(automatic == "SAME_UPPER" || automatic == "SAME_LOWER", "it pads by '{}'",
               automatic);
    const int64_t extent = x[static_cast<int>(a) + 2],
                  reach = (w.kernel[a] - 1) * w.dilation[a] + 1;
    const int64_t places = (extent + w.stride[a] - 1) / w.stride[a];
    const int64_t total = std::max<int64_t>(0, (places - 1) * w.stride[a] + reach - extent);
    w.before[a] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.behind[a] = total - w.before[a];
  }
  return w;
}

}  // namespace thimble
