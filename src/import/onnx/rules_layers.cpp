// Layers, functions of elements, and the end of a graph.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Of the same meaning and with no more to say.
constexpr auto kSameMaps = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"Relu", "relu"},   {"Sigmoid", "sigmoid"},
     {"Tanh", "tanh"},   {"Exp", "exp"},
     {"Log", "log"},     {"Sqrt", "sqrt"},
     {"Abs", "abs"},     {"Neg", "neg"},
     {"Erf", "erf"},     {"Sin", "sin"},
     {"Cos", "cos"},     {"Reciprocal", "reciprocal"},
     {"Round", "round"}, {"Floor", "floor"},
     {"Ceil", "ceil"},   {"HardSwish", "hard_swish"},
     {"Mish", "mish"},   {"Softplus", "softplus"},
     {"Add", "add"},     {"Sub", "sub"},
     {"Mul", "mul"},     {"Div", "div"}});

}  // namespace

void OnnxLowering::lower(const OnnxNode& node) {
  if (lower_known(node) || lower_shape(node) || lower_layer(node) || lower_elements(node) ||
      lower_places(node)) {
    return;
  }
  user_error("there is no such op here");
}

bool OnnxLowering::lower_elements(const OnnxNode& node) {
  for (const auto& [theirs, ours] : kSameMaps) {
    if (node.op != theirs) continue;
    std::vector<Operand> in;
    for (size_t i = 0; i < node.in.size(); ++i) in.push_back(operand(name(i)));
    emit(std::string(ours), in);
    return true;
  }
  const auto x = [&] { return operand(name(0)); };
  if (node.op == "CastLike" && known(name(0)) != nullptr) {
    set_known(Known(known_in(0)));
  } else if (node.op == "Identity" || node.op == "CastLike" || node.op == "Cast") {
    const int64_t to = node.whole("to", 1);
    user_check(node.op != "Cast" || to == 1 || l_.type_of(name(0)).dtype == DType::i32,
               "it casts to ONNX's type {}; float can be", to);
    if (node.op == "Cast" && to == 1) {
      emit("cast", {x()});
    } else {
      l_.alias(node.out[0], name(0));
    }
  } else if (node.op == "Clip") {
    Attrs attrs;
    const auto bound = [&](size_t i, const char* theirs, const char* ours) {
      if (has(i)) attrs.set(ours, known_in(i).numbers.at(0));
      if (node.attributes.contains(theirs)) attrs.set(ours, node.real(theirs, 0));
    };
    bound(1, "min", "low");
    bound(2, "max", "high");
    emit("clip", {x()}, attrs);
  } else if (node.op == "Pow") {
    emit("pow", {x()}, {{"exponent", known_in(1).numbers.at(0)}});
  } else if (node.op == "Gelu") {
    emit("gelu", {x()}, {{"approximate", std::string(node.text("approximate", "none"))}});
  } else if (node.op == "LeakyRelu") {
    emit("leaky_relu", {x()}, {{"slope", node.real("alpha", 0.01)}});
  } else if (node.op == "Elu") {
    emit("elu", {x()}, {{"alpha", node.real("alpha", 1)}});
  } else if (node.op == "HardSigmoid") {
    user_check(std::abs(node.real("alpha", 0.2) - 1.0 / 6) < 1e-4 && node.real("beta", 0.5) == 0.5,
               "its slope is {}; 1/6 can be", node.real("alpha", 0.2));
    emit("hard_sigmoid", {x()});
  } else if (node.op == "IsNaN") {
    not_a_number_[node.out[0]] = name(0);
  } else if (node.op == "Where") {  // exporters guard softmax that way, where all is masked
    const auto guarded = not_a_number_.find(name(0));
    user_check(guarded != not_a_number_.end() && guarded->second == name(2),
               "its condition is not known beforehand");
    l_.alias(node.out[0], name(2));
  } else {
    return false;
  }
  return true;
}

bool OnnxLowering::lower_layer(const OnnxNode& node) {
  const auto x = [&] { return operand(name(0)); };
  const auto axis = [&](int64_t usual) {
    return int64_t{axis_of(node.whole("axis", usual), shape(name(0)).rank())};
  };
  if (node.op == "Conv" || node.op == "ConvTranspose") {
    conv(node, node.op == "ConvTranspose");
  } else if (node.op == "Gemm") {
    gemm(node);
  } else if (node.op == "MatMul") {
    matmul();
  } else if (node.op == "BatchNormalization") {
    // What is trained says nothing of it in some exports: it is, unless its scale is frozen.
    emit("batch_norm", {x(), optional(1), optional(2), optional(3), optional(4)},
         {{"momentum", 1 - node.real("momentum", 0.9)}, {"epsilon", node.real("epsilon", 1e-5)}});
  } else if (node.op == "LayerNormalization") {
    emit("layer_norm", {x(), optional(1), optional(2)},
         {{"axes", shape(name(0)).rank() - axis(-1)}, {"epsilon", node.real("epsilon", 1e-5)}});
  } else if (node.op == "Softmax" || node.op == "LogSoftmax") {
    emit(node.op == "Softmax" ? "softmax" : "log_softmax", {x()}, {{"axis", axis(-1)}});
  } else if (node.op == "Dropout") {
    const double p = has(1) ? known_in(1).numbers.at(0) : node.real("ratio", 0.5);
    emit("dropout", {x()}, {{"p", p}});
  } else if (node.op == "GlobalAveragePool") {
    emit("resize", {x()}, {{"size", std::vector<int64_t>{1, 1}}, {"mode", std::string("average")}});
  } else if (node.op == "MaxPool" || node.op == "AveragePool") {
    const std::vector<int64_t> kernel = node.wholes("kernel_shape", {});
    const std::vector<int64_t> pads = node.wholes("pads", {0, 0, 0, 0});
    user_check(kernel.size() == 2 && pads.size() == 4 && pads[0] == pads[2] && pads[1] == pads[3] &&
                   node.whole("ceil_mode", 0) == 0,
               "it pools other than images padded alike on both sides");
    user_check(
        node.op == "MaxPool" || pads[0] + pads[1] == 0 || node.whole("count_include_pad", 0) != 0,
        "it does not count its padding");
    emit(node.op == "MaxPool" ? "max_pool" : "avg_pool", {x()},
         {{"kernel", kernel},
          {"stride", node.wholes("strides", {1, 1})},
          {"padding", std::vector<int64_t>{pads[0], pads[1]}}});
  } else if (node.op == "ReduceMean" || node.op == "ReduceSum") {
    const int rank = shape(name(0)).rank();
    std::vector<int64_t> axes = axes_of(1);
    for (int64_t& one : axes) one = axis_of(one, rank);
    for (int at = 0; at < rank && axes.empty() && std::ssize(axes) < rank; ++at) axes.push_back(at);
    emit(node.op == "ReduceMean" ? "mean" : "sum", {x()},
         {{"axes", axes}, {"keep", node.whole("keepdims", 1)}});
  } else if (node.op == "Resize") {
    resize(node);
  } else if (node.op == "LSTM") {
    lstm(node);
  } else {
    return false;
  }
  return true;
}

void OnnxLowering::conv(const OnnxNode& node, bool transposed) {
  const Shape x = shape(name(0)), w = shape(name(1));
  const size_t axes = static_cast<size_t>(std::max(0, x.rank() - 2));
  user_check(axes == 1 || axes == 2, "it convolves over {} axes", axes);
  const std::string_view automatic = node.text("auto_pad", "NOTSET");
  user_check(automatic == "NOTSET" || automatic == "VALID", "it pads by '{}'", automatic);
  const std::vector<int64_t> ones(axes, 1),
      pads = node.wholes("pads", std::vector<int64_t>(2 * axes, 0));
  const std::vector<int64_t> stride = node.wholes("strides", ones),
                             dilation = node.wholes("dilations", ones);
  user_check(pads.size() == 2 * axes && stride.size() == axes && dilation.size() == axes &&
                 std::equal(pads.begin(), pads.begin() + std::ssize(ones),
                            pads.begin() + std::ssize(ones)),
             "it pads otherwise before than behind");
  const std::vector<int64_t> padding(pads.begin(), pads.begin() + std::ssize(ones));
  Attrs attrs = {{"stride", stride},
                 {"padding", padding},
                 {"dilation", dilation},
                 {"groups", node.whole("group", 1)}};
  std::vector<Operand> in = {operand(name(0)), operand(name(1)), optional(2)};
  if (!transposed) return emit("conv", in, attrs);
  user_check(axes == 2 && w.rank() == 4, "it is a transposed convolution over {} axes", axes);
  const std::vector<int64_t> more = node.wholes("output_padding", {0, 0});
  std::vector<int64_t> dims = {x[0], w[1] * node.whole("group", 1)};
  for (size_t a = 0; a < 2; ++a) {
    const int at = static_cast<int>(a) + 2;
    dims.push_back((x[at] - 1) * stride[a] - 2 * padding[a] + dilation[a] * (w[at] - 1) +
                   more.at(a) + 1);
  }
  emit("conv_transpose", in, attrs, Shape(std::span<const int64_t>(dims)));
}

void OnnxLowering::gemm(const OnnxNode& node) {
  user_check(
      node.real("alpha", 1) == 1 && node.real("beta", 1) == 1 && node.whole("transA", 0) == 0,
      "it scales its factors or turns the first");
  if (node.whole("transB", 0) != 0) {
    return emit("linear", {operand(name(0)), operand(name(1)), optional(2)});
  }
  const Shape a = shape(name(0)), b = shape(name(1));
  user_check(a.rank() == 2 && b.rank() == 2, "it multiplies no matrices");
  const Operand c = optional(2);
  const std::string product = c.none() ? node.out[0] : fresh();
  emit_as("matmul", {operand(name(0)), operand(name(1))}, product, {}, Shape{a[0], b[1]});
  if (!c.none()) emit("add", {{product, {}}, c});
}

void OnnxLowering::matmul() {
  const Shape a = shape(name(0)), b = shape(name(1));
  user_check(a.rank() >= 2 && b.rank() >= 2, "it multiplies vectors");
  const auto leading = [](const Shape& s) {
    return Shape(s.dims().first(static_cast<size_t>(s.rank()) - 2));
  };
  const Shape outer = broadcast(leading(a), leading(b), "MatMul");
  std::vector<int64_t> dims(outer.dims().begin(), outer.dims().end());
  dims.push_back(a.back(2));
  dims.push_back(b.back(1));
  emit("matmul", {operand(name(0)), operand(name(1))}, {}, Shape(std::span<const int64_t>(dims)));
}

// ONNX's gates are input, output, forget, cell; ours input, forget, cell, output.
void OnnxLowering::lstm(const OnnxNode& node) {
  user_check(node.text("direction", "forward") == "forward" && !has(4) && !has(7) &&
                 node.whole("layout", 0) == 0 && node.real("clip", 0) == 0,
             "it is not a plain LSTM in one direction");
  const Shape x = shape(name(0)), r = shape(name(2));
  user_check(x.rank() == 3 && r.rank() == 3, "it wants a sequence [T,N,I]");
  const int64_t steps = x[0], rows = x[1], hidden = r[2];
  const auto ordered = [&](const std::string& from, int64_t begin, const Shape& to) {
    std::vector<Operand> gates;
    for (const int64_t gate : {0, 2, 3, 1}) {
      gates.push_back({part(from, 1, begin + gate * hidden, begin + (gate + 1) * hidden), {}});
    }
    return Operand{reshaped(emit_as("concat", gates, fresh(), {{"axis", int64_t{1}}}), to), {}};
  };
  const auto state = [&](size_t i) {
    if (has(i) && known(name(i)) == nullptr) return Operand{reshaped(name(i), {rows, hidden}), {}};
    const std::string zero = fresh();
    const double start = has(i) ? known_in(i).numbers.at(0) : 0;
    user_check(start == 0, "it starts from other than zeros");
    l_.add_filled(zero, {{rows, hidden}, options_.storage}, 0);
    return Operand{zero, {}};
  };
  const std::string across =
      emit_as("permute", {{name(0), {}}}, fresh(), {{"axes", std::vector<int64_t>{1, 0, 2}}});
  std::vector<Operand> in = {{across, {}},
                             state(5),
                             state(6),
                             ordered(name(1), 0, {4 * hidden, x[2]}),
                             ordered(name(2), 0, {4 * hidden, hidden})};
  if (has(3)) {
    in.push_back(ordered(name(3), 0, {4 * hidden}));
    in.push_back(ordered(name(3), 4 * hidden, {4 * hidden}));
  }
  const std::string all = fresh(), h = fresh(), c = fresh();
  emit_as("lstm", in, all, {}, {}, {h, c});
  const std::string turned =
      emit_as("permute", {{all, {}}}, fresh(), {{"axes", std::vector<int64_t>{1, 0, 2}}});
  reshaped(turned, {steps, 1, rows, hidden}, node.out[0]);
  if (node.out.size() > 1 && !node.out[1].empty()) reshaped(h, {1, rows, hidden}, node.out[1]);
  if (node.out.size() > 2 && !node.out[2].empty()) reshaped(c, {1, rows, hidden}, node.out[2]);
}

void OnnxLowering::resize(const OnnxNode& node) {
  const Shape x = shape(name(0));
  user_check(x.rank() == 4, "it resizes other than images");
  std::vector<int64_t> size;
  if (has(3)) {
    size = known_in(3).wholes();
  } else {
    const Known& scales = known_in(2);
    user_check(scales.elements() == 4, "it has no scale for every axis");
    for (int a = 0; a < 4; ++a) {
      size.push_back(static_cast<int64_t>(
          std::floor(scales.numbers[static_cast<size_t>(a)] * static_cast<double>(x[a]))));
    }
  }
  user_check(size.size() == 4 && size[0] == x[0] && size[1] == x[1], "it resizes rows or channels");
  const std::string_view mode = node.text("mode", "nearest");
  const std::string_view where = node.text("coordinate_transformation_mode", "half_pixel");
  const bool corners = where == "align_corners";
  user_check(
      (mode == "nearest" && where == "asymmetric") ||
          (mode == "linear" && (corners || where == "half_pixel" || where == "pytorch_half_pixel")),
      "it resizes by '{}' with '{}'", mode, where);
  emit("resize", {operand(name(0))},
       {{"size", std::vector<int64_t>{size[2], size[3]}},
        {"mode", std::string(mode == "nearest" ? "nearest"
                             : corners         ? "corners"
                                               : "bilinear")}});
}

// A graph that ends in one number ends in its loss; else logits meet "target".
std::string OnnxLowering::loss() {
  user_check(!onnx_.outputs.empty(), "it makes nothing");
  const std::string& end = onnx_.outputs.front().name;
  if (!l_.knows(end)) return end;  // what is wrong has been said
  const Shape made = l_.type_of(end).shape;
  if (made.elements() == 1 && options_.batch > 1) return end;
  user_check(made.rank() >= 2 && made[0] == options_.batch,
             "its output '{}' is {}, no logits [N,C,...] of {} rows", end, to_string(made),
             options_.batch);
  OnnxNode closing;
  closing.out = {"loss"};
  node_ = &closing;
  std::string logits = end;
  NetInput target = {.name = "target", .dtype = DType::i32, .shape = {{1, true}}, .target = true};
  const int64_t classes = made.rank() == 3 ? made[2] : made[1];
  std::string labels = "target";
  if (made.rank() == 3) {  // [N,T,C]: a class at every place
    target.shape.push_back({made[1], false});
    l_.add_input(target, {.limit = classes, .ignored = -100, .one_counts = true});
    logits = reshaped(end, {made[0] * made[1], made[2]});
    labels = reshaped("target", {made[0] * made[1]});
  } else {
    for (int axis = 2; axis < made.rank(); ++axis) target.shape.push_back({made[axis], false});
    l_.add_input(target, {.limit = classes, .ignored = -100, .one_counts = true});
  }
  emit("cross_entropy", {{logits, {}}, {labels, {}}}, {{"ignore", int64_t{-100}}});
  return "loss";
}

}  // namespace thimble
