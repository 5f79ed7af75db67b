// Layers: products, convolutions, norms.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {

void OnnxLowering::fix_inputs() {
  for (const auto& [name, number] : fixed_in(choices_)) {
    for (const OnnxEnd& input : onnx_.inputs) {
      if (input.name != name) continue;
      user_check(input.refused.empty(), "its input '{}' is {}, which cannot be read", name,
                 input.refused);
      const Shape all = shape_for(extents_of_fixed(onnx_, input, choices_), options_.batch);
      const bool whole = !is_floating(input.dtype);
      user_check(!whole || number == std::floor(number), "--fixed {}={}: it wants a whole number",
                 name, number);
      known_[name] = filled(all, number, whole);
    }
  }
}

void OnnxLowering::lower(const OnnxNode& node) {
  if (node.op == "If") return branch(node);
  if (lower_known(node) || lower_shape(node) || lower_layer(node) || lower_norm(node) ||
      lower_pooling(node) || lower_elements(node) || lower_choices(node) || lower_sums(node) ||
      lower_places(node) || lower_sequences(node)) {
    return;
  }
  if (node.op.find("uantize") != std::string::npos || node.op.ends_with("Integer") ||
      node.op.starts_with("QLinear")) {
    user_error("it computes with 8 bits; take the file in float");
  }
  if (node.op == "Loop" || node.op == "Scan") user_error("it repeats a part of the graph");
  user_error("there is no such op here");
}

void OnnxLowering::branch(const OnnxNode& node) {
  const Known* condition = known(name(0));
  user_check(condition != nullptr && condition->elements() == 1,
             "its condition is not known beforehand");
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (&nodes_[n] == &node) throw Taken{n, condition->numbers[0] != 0};
  }
}

bool OnnxLowering::is_whole(const std::string& of) {
  if (const Known* numbers = known(of)) return numbers->whole;
  if (whole_.contains(of)) return true;
  return l_.knows(of) && !is_floating(l_.type_of(of).dtype);
}

// Ops that make whole numbers of whole numbers.
void OnnxLowering::note_whole(const OnnxNode& node) {
  static constexpr auto kKeep = std::to_array<std::string_view>(
      {"Add",       "Sub",      "Mul",     "Div",     "Mod",    "Neg",       "Abs",
       "Max",       "Min",      "Reshape", "Slice",   "Concat", "Transpose", "Squeeze",
       "Unsqueeze", "Identity", "Expand",  "Flatten", "Tile",   "ReduceSum", "ReduceMax",
       "ReduceMin", "Split",    "Pad",     "CumSum",  "Clip"});
  if (node.out.empty() || known(node.out[0]) != nullptr) return;
  bool whole = node.op == "ArgMax" || node.op == "ArgMin";
  if (node.op == "Cast") {
    const int64_t to = node.whole("to", 1);
    whole = to != 1 && to != 10 && to != 11 && to != 16;
  } else if (node.op == "Where") {
    whole = is_whole(node.in.at(1)) && is_whole(node.in.at(2));
  } else if (node.op == "Gather" || node.op == "GatherElements" || node.op == "GatherND") {
    whole = is_whole(node.in.at(0));
  } else if (std::ranges::find(kKeep, node.op) != kKeep.end()) {
    const size_t count =
        node.op == "Concat" || node.op == "Max" || node.op == "Min" ||
                (node.in.size() == 2 &&
                 std::string_view("AddSubMulDivMod").find(node.op) != std::string_view::npos)
            ? node.in.size()
            : 1;
    whole = true;
    for (size_t i = 0; i < count; ++i) whole = whole && is_whole(node.in.at(i));
  }
  if (!whole) return;
  for (const std::string& out : node.out) whole_.insert(out);
}

bool OnnxLowering::lower_layer(const OnnxNode& node) {
  if (node.op == "Conv" || node.op == "com.microsoft.FusedConv") {
    conv(node);
  } else if (node.op == "ConvTranspose") {
    conv_transpose(node);
  } else if (node.op == "Gemm") {
    gemm(node);
  } else if (node.op == "MatMul") {
    matmul();
  } else if (node.op == "Einsum") {
    einsum(node);
  } else if (node.op == "Softmax" || node.op == "LogSoftmax") {
    const std::string op = node.op == "Softmax" ? "softmax" : "log_softmax";
    const Shape x = shape(name(0));
    const bool over_one = onnx_.opset >= 13 || onnx_.opset == 0;
    const int axis = axis_of(node.whole("axis", over_one ? -1 : 1), x.rank());
    if (over_one || axis == x.rank() - 1) {
      emit(op, {operand(name(0))}, {{"axis", int64_t{axis}}});
    } else {  // older opsets take all axes from there on as one
      const std::string flat = reshaped(name(0), {x.product(0, axis), x.product(axis, x.rank())});
      reshaped(emitted(op, {{flat, {}}}, {{"axis", int64_t{1}}}).value, x, node.out[0]);
    }
  } else if (node.op == "Dropout") {
    const double p = has(1) ? known_in(1).numbers.at(0) : node.real("ratio", 0.5);
    emit("dropout", {operand(name(0))}, {{"p", p}});
  } else if (node.op == "Resize" || node.op == "Upsample") {
    resize(node);
  } else {
    return false;
  }
  return true;
}

void OnnxLowering::conv(const OnnxNode& node) {
  const Shape x = shape(name(0)), weight = shape(name(1));
  if (x.rank() == 5 && weight.rank() == 5) return conv_of_volumes(node);
  user_check(weight.rank() == x.rank() && (x.rank() == 3 || x.rank() == 4),
             "it convolves {} with {}; rows, images and volumes can be", to_string(x),
             to_string(weight));
  const auto kernel = dims_of(weight);
  const Windows w = windows_of(node, x, {kernel.begin() + 2, kernel.end()});
  std::string from = as_value(name(0));
  std::vector<int64_t> padding = w.before;
  if (w.before != w.behind || std::ranges::any_of(w.before, [](int64_t p) { return p < 0; })) {
    for (size_t a = 0; a < padding.size(); ++a) {
      from = padded(from, static_cast<int>(a) + 2, w.before[a], w.behind[a], 0);
    }
    padding.assign(padding.size(), 0);
  }
  const std::string activation(node.text("activation", ""));
  const Attrs attrs = {{"stride", w.stride},
                       {"padding", padding},
                       {"dilation", w.dilation},
                       {"groups", node.whole("group", 1)}};
  std::vector<Operand> in = {{from, {}}, {as_value(name(1)), {}}};
  if (has(2)) in.push_back({as_value(name(2)), {}});
  if (activation.empty()) return emit("conv", in, attrs);
  user_check(!has(3), "it adds another tensor");
  const Operand y = emitted("conv", in, attrs);
  if (activation == "LeakyRelu") {
    const std::vector<double> settings = node.attributes.at("activation_params").reals;
    return emit("leaky_relu", {y}, {{"slope", settings.at(0)}});
  }
  user_check(activation == "Relu" || activation == "Sigmoid" || activation == "Tanh",
             "it applies '{}'", activation);
  emit(activation == "Relu" ? "relu" : activation == "Tanh" ? "tanh" : "sigmoid", {y});
}

// A sum of convolutions of frames: of each place of the filter's depth, over all frames that it sees.
void OnnxLowering::conv_of_volumes(const OnnxNode& node) {
  const Shape weight = shape(name(1));
  const auto kernel = dims_of(weight);
  const Windows w = windows_of(node, shape(name(0)), {kernel.begin() + 2, kernel.end()});
  std::string from = as_value(name(0));
  for (size_t a = 0; a < 3; ++a) {
    from = padded(from, static_cast<int>(a) + 2, w.before[a], w.behind[a], 0);
  }
  const Shape x = shape(from);
  const int64_t reach = (weight[2] - 1) * w.dilation[0] + 1;
  user_check(reach <= x[2] && !has(3) && node.text("activation", "").empty(),
             "a filter {} deep does not fit {} frames", reach, x[2]);
  const int64_t frames = (x[2] - reach) / w.stride[0] + 1;
  const Attrs attrs = {{"stride", std::vector<int64_t>{w.stride[1], w.stride[2]}},
                       {"padding", std::vector<int64_t>{0, 0}},
                       {"dilation", std::vector<int64_t>{w.dilation[1], w.dilation[2]}},
                       {"groups", node.whole("group", 1)}};
  Operand sum;
  for (int64_t k = 0; k < weight[2]; ++k) {
    const int64_t begin = k * w.dilation[0];
    const std::string seen =
        stepped(from, 2, begin, begin + (frames - 1) * w.stride[0] + 1, w.stride[0]);
    const std::string images =
        reshaped(permuted(seen, {0, 2, 1, 3, 4}), {x[0] * frames, x[1], x[3], x[4]});
    const std::string filter = reshaped(part(as_value(name(1)), 2, k, k + 1),
                                        {weight[0], weight[1], weight[3], weight[4]});
    const Operand y = emitted("conv", {{images, {}}, {filter, {}}}, attrs);
    sum = k == 0 ? y : emitted("add", {sum, y});
  }
  if (has(2)) {
    const std::string bias = reshaped(as_value(name(2)), {weight[0], 1, 1});
    sum = emitted("add", {sum, {bias, {}}});
  }
  const Shape y = shape(sum.value);
  const std::string apart = reshaped(sum.value, {x[0], frames, y[1], y[2], y[3]});
  permuted(apart, {0, 2, 1, 3, 4}, node.out[0]);
}

// With all that lies beyond the image, of which the padding is cut off where it is not alike on both
// sides.
void OnnxLowering::conv_transpose(const OnnxNode& node) {
  Shape x = shape(name(0)), weight = shape(name(1));
  user_check(weight.rank() == x.rank() && (x.rank() == 3 || x.rank() == 4),
             "it convolves {} with {}; rows and images can be", to_string(x), to_string(weight));
  const auto kernel = dims_of(weight);
  OnnxNode plain = node;
  plain.attributes.erase("auto_pad");
  Windows w = windows_of(plain, x, {kernel.begin() + 2, kernel.end()});
  const size_t axes = w.kernel.size();
  const std::vector<int64_t> more = node.wholes("output_padding", std::vector<int64_t>(axes, 0));
  const std::vector<int64_t> asked = node.wholes("output_shape", {});
  const std::string_view automatic = node.text("auto_pad", "NOTSET");
  std::vector<int64_t> sizes;
  for (size_t a = 0; a < axes; ++a) {
    const int64_t whole = (x[static_cast<int>(a) + 2] - 1) * w.stride[a] +
                          w.dilation[a] * (w.kernel[a] - 1) + 1 + more.at(a);
    int64_t size = whole - w.before[a] - w.behind[a];
    if (!asked.empty()) size = asked.at(asked.size() - axes + a);
    if (asked.empty() && automatic.starts_with("SAME"))
      size = x[static_cast<int>(a) + 2] * w.stride[a];
    if (!asked.empty() || automatic.starts_with("SAME")) {
      const int64_t total = std::max<int64_t>(0, whole - size);
      w.before[a] = automatic == "SAME_LOWER" || (!asked.empty() && automatic == "NOTSET")
                        ? total - total / 2
                        : total / 2;
      w.behind[a] = total - w.before[a];
    }
    user_check(size >= 1 && size <= whole, "it makes {} of {}", size, whole);
    sizes.push_back(size);
  }
  const bool alike = w.before == w.behind && asked.empty();
  const auto four = [&](const std::string& of) {  // rows as images one pixel high
    std::vector<int64_t> dims = dims_of(shape(of));
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    return reshaped(of, as_shape(dims));
  };
  const auto both = [&](std::vector<int64_t> list, int64_t other) {
    if (list.size() == 1) list.insert(list.begin(), other);
    return list;
  };
  std::vector<int64_t> dims = {x[0], weight[1] * node.whole("group", 1)};
  std::vector<int64_t> made = sizes;
  for (size_t a = 0; a < axes && !alike; ++a) made[a] += w.before[a] + w.behind[a];
  const std::vector<int64_t> sides = both(made, 1);
  dims.insert(dims.end(), sides.begin(), sides.end());
  const std::vector<int64_t> padding = alike ? w.before : std::vector<int64_t>(axes, 0);
  std::vector<Operand> in = {{axes == 1 ? four(as_value(name(0))) : as_value(name(0)), {}},
                             {axes == 1 ? four(as_value(name(1))) : as_value(name(1)), {}}};
  if (has(2)) in.push_back({as_value(name(2)), {}});
  std::string y = emit_as("conv_transpose", in, fresh(),
                          {{"stride", both(w.stride, 1)},
                           {"padding", both(padding, 0)},
                           {"dilation", both(w.dilation, 1)},
                           {"groups", node.whole("group", 1)}},
                          as_shape(dims));
  if (axes == 1) y = reshaped(y, {dims[0], dims[1], dims[3]});
  for (size_t a = 0; a < axes && !alike; ++a) {
    const int axis = static_cast<int>(a) + 2;
    y = stepped(y, axis, w.before[a], w.before[a] + sizes[a], 1);
  }
  l_.alias(node.out[0], y);
}

void OnnxLowering::gemm(const OnnxNode& node) {
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const auto turned = [&](const std::string& of) {
    return permuted(of, std::vector<int64_t>{1, 0});
  };
  std::string a = as_value(name(0)), b = as_value(name(1));
  user_check(shape(a).rank() == 2 && shape(b).rank() == 2, "it multiplies no matrices");
  if (node.whole("transA", 0) != 0) a = turned(a);
  Operand c = optional(2);
  const bool by_rows = node.whole("transB", 0) != 0;
  const bool bias = c.none() || (!c.number && shape(name(2)).rank() == 1 &&
                                 shape(name(2))[0] == shape(b)[by_rows ? 0 : 1]);
  if (by_rows && alpha == 1 && beta == 1 && bias) {
    return emit("linear", {{a, {}}, {b, {}}, c});
  }
  if (by_rows) b = turned(b);
  const bool alone = alpha == 1 && (c.none() || beta == 0);
  std::string y = alone ? node.out[0] : fresh();
  emit_as("matmul", {{a, {}}, {b, {}}}, y, {}, Shape{shape(a)[0], shape(b)[1]});
  if (alone) return;
  Operand product = {y, {}};
  if (alpha != 1) product = emitted("mul", {product, {"", alpha}});
  if (c.none() || beta == 0) return l_.alias(node.out[0], product.value);
  if (beta != 1) c = c.number ? Operand{"", *c.number * beta} : emitted("mul", {c, {"", beta}});
  emit("add", {product, c});
}

// Vectors are matrices of one row, or of one column.
void OnnxLowering::matmul() {
  std::string x = as_value(name(0)), y = as_value(name(1));
  Shape a = shape(x), b = shape(y);
  user_check(a.rank() >= 1 && b.rank() >= 1, "it multiplies numbers");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) x = reshaped(x, {1, a[0]});
  if (column) y = reshaped(y, {b[0], 1});
  a = shape(x), b = shape(y);
  const auto leading = [](const Shape& s) {
    return Shape(s.dims().first(static_cast<size_t>(s.rank()) - 2));
  };
  const Shape outer = broadcast(leading(a), leading(b), "MatMul");
  std::vector<int64_t> dims(outer.dims().begin(), outer.dims().end()), kept = dims;
  dims.push_back(a.back(2));
  dims.push_back(b.back(1));
  if (!row) kept.push_back(a.back(2));
  if (!column) kept.push_back(b.back(1));
  if (!row && !column) return emit("matmul", {{x, {}}, {y, {}}}, {}, as_shape(dims));
  reshaped(emitted("matmul", {{x, {}}, {y, {}}}, {}, as_shape(dims)).value, as_shape(kept),
           node_->out[0]);
}

}  // namespace thimble
