// The end of a graph: a loss of its own, or one that is attached to what it makes. Behind a Softmax or
// a Sigmoid a cross-entropy takes what stands before it; distances are of the output itself.
#include <algorithm>
#include <array>

#include "import/onnx/ends.h"
#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Ops that move the numbers of their first input, and leave them as they are.
bool only_moves(const OnnxNode& node) {
  constexpr std::array<std::string_view, 7> kMoves = {
      "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "ai.onnx.ml.ZipMap"};
  if (node.op == "Cast") {
    const int64_t to = node.whole("to", 1);
    return to == 1 || to == 10 || to == 11 || to == 16;
  }
  return std::ranges::find(kMoves, node.op) != kMoves.end();
}

std::vector<int64_t> front_first(int rank, int axis) {
  std::vector<int64_t> axes = {axis};
  for (int at = 0; at < rank; ++at) {
    if (at != axis) axes.push_back(at);
  }
  return axes;
}

// The axis that rows lie along; -1: none has as many.
int axis_of_rows(const Shape& shape, int64_t rows) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == rows) return axis;
  }
  return -1;
}

}  // namespace

OnnxLowering::Ending OnnxLowering::ending_of(const std::string& end) const {
  Ending ending;
  std::string at = end;
  for (size_t n = nodes_.size(); n-- > 0;) {
    const OnnxNode& node = nodes_[n];
    if (node.out.empty() || node.out[0] != at || node.in.empty()) continue;
    if (node.op == "Softmax" || node.op == "LogSoftmax" || node.op == "Sigmoid") {
      ending.activation = &node;
      return ending;
    }
    if (!only_moves(node)) break;
    ending.moves.push_back(&node);
    at = node.in[0];
  }
  return {};
}

// The moves behind the activation, applied to its input.
std::string OnnxLowering::before_activation(const std::string& end, const Ending& ending) {
  std::string at = ending.activation->in[0];
  for (size_t k = ending.moves.size(); k-- > 0;) {
    OnnxNode moved = *ending.moves[k];
    moved.in[0] = at;
    moved.out = {fmt::format("{}.before{}", end, k)};
    node_ = &moved;
    lower(moved);
    at = moved.out[0];
  }
  return at;
}

void OnnxLowering::add_target(const Shape& shape, DType dtype, WholeNumbers numbers) {
  NetInput target = {.name = "target", .dtype = dtype, .shape = {{1, true}}, .target = true};
  for (int axis = 1; axis < shape.rank(); ++axis) target.shape.push_back({shape[axis], false});
  for (const OnnxEnd& input : onnx_.inputs) {
    user_check(input.name != "target", "its input is called 'target', as what it is trained for");
  }
  l_.add_input(target, numbers);
}

// A class at every place: labels are [rows, ...], without the axis of classes.
std::string OnnxLowering::cross_entropy(std::string logits, int classes_axis) {
  Shape made = shape(logits);
  const int64_t classes = made[classes_axis], batch = options_.batch;
  user_check(classes >= 2,
             "its output '{}' is {}, of one class; choose --loss bce, mse, l1 or dice", logits,
             to_string(made));
  std::vector<int64_t> places = dims_of(made);
  places.erase(places.begin() + classes_axis);
  const int rows = axis_of_rows(as_shape(places), batch);
  user_check(rows >= 0, "its output '{}' is {}, no logits of {} rows", logits, to_string(made),
             batch);
  const WholeNumbers numbers = {.limit = classes, .ignored = -100, .one_counts = true};
  if (rows == 0 && classes_axis == 1) {  // [N,C,...]
    add_target(as_shape(places), DType::i32, numbers);
    emit("cross_entropy", {{logits, {}}, {"target", {}}}, {{"ignore", int64_t{-100}}});
    return "loss";
  }
  std::vector<int64_t> axes;
  for (int axis = 0; axis < made.rank(); ++axis) {
    if (axis != classes_axis) axes.push_back(axis);
  }
  std::rotate(axes.begin(), axes.begin() + rows, axes.begin() + rows + 1);
  std::rotate(places.begin(), places.begin() + rows, places.begin() + rows + 1);
  axes.push_back(classes_axis);
  if (!std::ranges::is_sorted(axes)) logits = permuted(logits, axes);
  const int64_t count = as_shape(places).elements();
  logits = reshaped(logits, {count, classes});
  add_target(as_shape(places), DType::i32, numbers);
  const std::string labels = places.size() == 1 ? "target" : reshaped("target", {count});
  emit("cross_entropy", {{logits, {}}, {labels, {}}}, {{"ignore", int64_t{-100}}});
  return "loss";
}

// Means over all that a row has, and over the rows.
std::string OnnxLowering::distance(const std::string& output, std::string_view kind) {
  Shape made = shape(output);
  const int64_t batch = options_.batch;
  std::string x = as_value(output);
  int rows = axis_of_rows(made, batch);
  if (rows > 0) {
    x = permuted(x, front_first(made.rank(), rows));
  } else if (rows < 0) {  // rows and something else as one axis
    const int64_t first = made.rank() > 0 ? made[0] : 1;
    user_check(first % batch == 0 && first > 0,
               "its output '{}' is {}, which has no axis of {} rows", output, to_string(made),
               batch);
    std::vector<int64_t> dims = made.rank() > 0 ? dims_of(made) : std::vector<int64_t>{1};
    dims[0] = batch;
    if (first > batch) dims.insert(dims.begin() + 1, first / batch);
    x = reshaped(x, as_shape(dims));
  }
  made = shape(x);
  add_target(made, DType::f32, {});
  const Operand y = {x, {}}, t = {"target", {}};
  const auto over = [&](int first) {
    std::vector<int64_t> axes;
    for (int axis = first; axis < made.rank(); ++axis) axes.push_back(axis);
    return Attrs{{"axes", axes}, {"keep", int64_t{0}}};
  };
  if (kind == "dice") {
    user_check(made.rank() >= 2, "its output '{}' is {}, one number a row", output,
               to_string(made));
    const auto sum = [&](const Operand& of) { return emitted("sum", {of}, over(1)); };
    const Operand twice = emitted("mul", {sum(emitted("mul", {y, t})), {"", 2.0}});
    const Operand both = emitted("add", {sum(y), sum(t)});
    const Operand share =
        emitted("div", {emitted("add", {twice, {"", 1.0}}), emitted("add", {both, {"", 1.0}})});
    emit("mean", {emitted("sub", {{"", 1.0}, share})},
         {{"axes", std::vector<int64_t>{0}}, {"keep", int64_t{0}}});
  } else if (kind == "bce") {  // of logits
    const Operand above = emitted("softplus", {y});
    emit("mean", {emitted("sub", {above, emitted("mul", {y, t})})}, over(0));
  } else {
    const Operand off = emitted("sub", {y, t});
    emit("mean", {emitted(kind == "mse" ? "square" : "abs", {off})}, over(0));
  }
  return "loss";
}

std::string OnnxLowering::loss() {
  std::string end = end_of_loss(onnx_, choices_).name;
  OnnxNode closing;
  closing.out = {"loss"};
  node_ = &closing;
  user_check(known(end) == nullptr, "its output '{}' depends on no input", end);
  if (!l_.knows(end)) return end;  // what is wrong has been said
  const Shape made = l_.type_of(end).shape;
  std::string kind = choices_.loss;
  const Ending ending = ending_of(end);
  const bool activated = ending.activation != nullptr;
  const bool shares = activated && ending.activation->op != "Sigmoid";
  if (kind == "own" ||
      (kind == "auto" && !activated && made.elements() == 1 && options_.batch > 1)) {
    user_check(made.elements() == 1, "its output '{}' is {}, not one number", end, to_string(made));
    return end;
  }
  user_check(!is_whole(end), "its output '{}' is of whole numbers; choose another by --loss-of",
             end);
  if (kind == "auto") kind = activated && !shares ? "bce" : "cross_entropy";
  if (kind == "cross_entropy") {
    user_check(!activated || shares,
               "its output '{}' is a Sigmoid's, which a cross-entropy of classes does not go with; "
               "choose --loss bce",
               end);
    if (shares) {
      const std::string before = ending.activation->in[0];
      const Shape logits = shape(before);
      const bool over_one = onnx_.opset >= 13 || onnx_.opset == 0;
      const int axis = axis_of(ending.activation->whole("axis", over_one ? -1 : 1), logits.rank());
      if (over_one || axis + 1 == logits.rank()) return cross_entropy(as_value(before), axis);
      const Shape flat = {logits.product(0, axis), logits.product(axis, logits.rank())};
      return cross_entropy(reshaped(before, flat), 1);
    }
    user_check(made.rank() >= 2,
               "its output '{}' is {}, no logits [N,C,...]; choose --loss bce, mse, l1 or dice",
               end, to_string(made));
    return cross_entropy(end, made.rank() == 3 ? 2 : 1);
  }
  if (kind == "bce") {
    user_check(!shares, "its output '{}' is a Softmax's; choose --loss cross_entropy", end);
    const std::string logits = activated ? before_activation(end, ending) : end;
    node_ = &closing;
    return distance(logits, kind);
  }
  if (kind == "dice" && !activated) {
    return distance(emitted("sigmoid", {{end, {}}}).value, kind);
  }
  return distance(end, kind);
}

}  // namespace thimble
