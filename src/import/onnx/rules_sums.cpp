// Sums, means and the largest over axes; products by letters.
#include <algorithm>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {

bool OnnxLowering::lower_sums(const OnnxNode& node) {
  if (node.op == "ArgMax" || node.op == "ArgMin") {
    const Shape x = shape(name(0));
    const int axis = axis_of(node.whole("axis", 0), x.rank());
    user_check(node.whole("select_last_index", 0) == 0, "it takes the last of several");
    std::vector<int64_t> dims(static_cast<size_t>(x.rank()), 1);
    const int64_t extent = dims[static_cast<size_t>(axis)] = x[axis];
    Known behind = {as_shape(dims), {}, true};  // larger in front
    for (int64_t at = 0; at < extent; ++at)
      behind.numbers.push_back(static_cast<double>(extent - at));
    Operand from = operand(name(0));
    if (node.op == "ArgMin") from = emitted("neg", {from});
    const Attrs over = {{"axes", std::vector<int64_t>{axis}}, {"keep", int64_t{1}}};
    const Operand those = emitted("cast", {emitted("eq", {from, emitted("max", {from}, over)})});
    const Operand first =
        emitted("max", {emitted("mul", {those, {constant_of(behind, fresh()), {}}})},
                {{"axes", std::vector<int64_t>{axis}}, {"keep", node.whole("keepdims", 1)}});
    emit("sub", {{"", static_cast<double>(extent)}, first});
    return true;
  }
  if (!node.op.starts_with("Reduce")) return false;
  const std::string_view kind = std::string_view(node.op).substr(6);
  const Shape x = shape(name(0));
  std::vector<int64_t> axes = axes_of(1);
  for (int64_t& one : axes) one = axis_of(one, x.rank());
  if (axes.empty() && node.whole("noop_with_empty_axes", 0) != 0) {
    l_.alias(node.out[0], name(0));
    return true;
  }
  for (int at = 0; axes.empty() && at < x.rank(); ++at) {
    axes.resize(static_cast<size_t>(x.rank()));
    for (int k = 0; k < x.rank(); ++k) axes[static_cast<size_t>(k)] = k;
  }
  const int64_t keep = node.whole("keepdims", 1);
  const Attrs over = {{"axes", axes}, {"keep", keep}};
  const Attrs kept = {{"axes", axes}, {"keep", int64_t{1}}};
  const auto without = [&](const std::string& y) {  // axes of extent 1
    if (keep != 0) return l_.alias(node.out[0], y);
    std::vector<int64_t> dims;
    for (int at = 0; at < x.rank(); ++at) {
      if (std::ranges::find(axes, at) == axes.end()) dims.push_back(x[at]);
    }
    reshaped(y, as_shape(dims), node.out[0]);
  };
  const Operand from = operand(name(0));
  if (axes.empty()) {  // of a single number
    l_.alias(node.out[0], name(0));
  } else if (kind == "Mean" || kind == "Sum") {
    emit(kind == "Mean" ? "mean" : "sum", {from}, over);
  } else if (kind == "Max") {
    without(largest(name(0), axes));
  } else if (kind == "Min") {
    without(emitted("neg", {{largest(emitted("neg", {from}).value, axes), {}}}).value);
  } else if (kind == "L1") {
    emit("sum", {emitted("abs", {from})}, over);
  } else if (kind == "SumSquare" || kind == "L2") {
    const Operand squares = emitted("square", {from});
    if (kind == "SumSquare") {
      emit("sum", {squares}, over);
    } else {
      emit("sqrt", {emitted("sum", {squares}, over)});
    }
  } else if (kind == "LogSum") {
    emit("log", {emitted("sum", {from}, over)});
  } else if (kind == "LogSumExp") {
    const Operand top = emitted("max", {from}, kept);
    const Operand sum = emitted("sum", {emitted("exp", {emitted("sub", {from, top})})}, kept);
    without(emitted("add", {emitted("log", {sum}), top}).value);
  } else {
    return false;
  }
  return true;
}

// Of two tensors: letters that both have and the result has, too, number products of matrices;
// letters that both have alone are summed over.
void OnnxLowering::einsum(const OnnxNode& node) {
  std::string text(node.text("equation", ""));
  std::erase(text, ' ');
  const size_t arrow = text.find("->"), comma = text.find(',');
  user_check(arrow != std::string::npos && comma < arrow && node.in.size() == 2 &&
                 text.find('.') == std::string::npos &&
                 text.find(',', comma + 1) == std::string::npos,
             "it multiplies by '{}'; two tensors, each axis with a letter, can be", text);
  std::string a = text.substr(0, comma), b = text.substr(comma + 1, arrow - comma - 1);
  const std::string result = text.substr(arrow + 2);
  std::string x = as_value(name(0)), y = as_value(name(1));
  std::map<char, int64_t> extents;
  const auto note_extents = [&](const std::string& letters, const std::string& of) {
    const Shape s = shape(of);
    user_check(s.rank() == static_cast<int>(letters.size()), "'{}' names the axes of {}", letters,
               to_string(s));
    for (int k = 0; k < s.rank(); ++k) {
      const char letter = letters[static_cast<size_t>(k)];
      user_check(letters.find(letter) == static_cast<size_t>(k) &&
                     extents.emplace(letter, s[k]).first->second == s[k],
                 "'{}' has two extents for one letter, or takes a diagonal", text);
    }
  };
  note_extents(a, x);
  note_extents(b, y);
  // Letters of one operand alone, and not of the result, are summed over first.
  const auto reduced = [&](std::string& letters, const std::string& of, const std::string& other) {
    std::vector<int64_t> axes;
    std::string kept;
    for (size_t k = 0; k < letters.size(); ++k) {
      const bool stays = other.find(letters[k]) != std::string::npos ||
                         result.find(letters[k]) != std::string::npos;
      if (stays) kept += letters[k];
      if (!stays) axes.push_back(static_cast<int64_t>(k));
    }
    letters = kept;
    return axes.empty() ? of
                        : emitted("sum", {{of, {}}}, {{"axes", axes}, {"keep", int64_t{0}}}).value;
  };
  x = reduced(a, x, b);
  y = reduced(b, y, a);
  std::string batch, summed, left, right;
  for (const char letter : a) {
    const bool both = b.find(letter) != std::string::npos;
    const bool stays = result.find(letter) != std::string::npos;
    (both ? (stays ? batch : summed) : left) += letter;
  }
  for (const char letter : b) {
    if (a.find(letter) == std::string::npos) right += letter;
  }
  const auto product = [&](const std::string& letters) {
    int64_t count = 1;
    for (const char letter : letters) count *= extents[letter];
    return count;
  };
  const auto matrices = [&](const std::string& of, const std::string& letters,
                            const std::string& order, int64_t rows, int64_t columns) {
    std::vector<int64_t> axes;
    for (const char letter : order) axes.push_back(static_cast<int64_t>(letters.find(letter)));
    return reshaped(permuted(of, axes), {product(batch), rows, columns});
  };
  const int64_t rows = product(left), inner = product(summed), columns = product(right);
  const std::string made = emit_as("matmul",
                                   {{matrices(x, a, batch + left + summed, rows, inner), {}},
                                    {matrices(y, b, batch + summed + right, inner, columns), {}}},
                                   fresh(), {}, Shape{product(batch), rows, columns});
  const std::string letters = batch + left + right;
  user_check(letters.size() == result.size(), "'{}' makes axes that are not there", text);
  std::vector<int64_t> dims, axes;
  for (const char letter : letters) dims.push_back(extents[letter]);
  for (const char letter : result) {
    const size_t at = letters.find(letter);
    user_check(at != std::string::npos, "'{}' makes axes that are not there", text);
    axes.push_back(static_cast<int64_t>(at));
  }
  permuted(reshaped(made, as_shape(dims)), axes, node.out[0]);
}

}  // namespace thimble
