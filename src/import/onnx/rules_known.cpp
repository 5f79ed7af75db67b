// Nodes all of whose inputs are known: shapes and what is made of them, positions, masks.
#include <algorithm>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

using Combine = double (*)(double, double);

Combine combine_of(std::string_view op, bool whole) {
  if (op == "Add") return [](double a, double b) { return a + b; };
  if (op == "Sub") return [](double a, double b) { return a - b; };
  if (op == "Mul") return [](double a, double b) { return a * b; };
  if (op == "Div" && whole)
    return [](double a, double b) { return b == 0 ? 0 : std::trunc(a / b); };
  if (op == "Div") return [](double a, double b) { return a / b; };
  if (op == "Mod") return [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); };
  if (op == "Pow") return [](double a, double b) { return std::pow(a, b); };
  if (op == "Max") return [](double a, double b) { return std::max(a, b); };
  if (op == "Min") return [](double a, double b) { return std::min(a, b); };
  if (op == "Xor") return [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; };
  if (op == "Sum") return [](double a, double b) { return a + b; };
  if (op == "Equal") return [](double a, double b) { return a == b ? 1.0 : 0.0; };
  if (op == "Less") return [](double a, double b) { return a < b ? 1.0 : 0.0; };
  if (op == "LessOrEqual") return [](double a, double b) { return a <= b ? 1.0 : 0.0; };
  if (op == "Greater") return [](double a, double b) { return a > b ? 1.0 : 0.0; };
  if (op == "GreaterOrEqual") return [](double a, double b) { return a >= b ? 1.0 : 0.0; };
  if (op == "And") return [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; };
  if (op == "Or") return [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; };
  return nullptr;
}

using Change = double (*)(double);

Change change_of(std::string_view op) {
  if (op == "Sqrt") return [](double a) { return std::sqrt(a); };
  if (op == "Neg") return [](double a) { return -a; };
  if (op == "Not") return [](double a) { return a == 0 ? 1.0 : 0.0; };
  if (op == "Floor") return [](double a) { return std::floor(a); };
  if (op == "Ceil") return [](double a) { return std::ceil(a); };
  if (op == "Cos") return [](double a) { return std::cos(a); };
  if (op == "Sin") return [](double a) { return std::sin(a); };
  if (op == "Reciprocal") return [](double a) { return 1 / a; };
  if (op == "Abs") return [](double a) { return std::abs(a); };
  if (op == "Exp") return [](double a) { return std::exp(a); };
  if (op == "Log") return [](double a) { return std::log(a); };
  if (op == "Tanh") return [](double a) { return std::tanh(a); };
  if (op == "Erf") return [](double a) { return std::erf(a); };
  if (op == "Sigmoid") return [](double a) { return 1 / (1 + std::exp(-a)); };
  if (op == "Relu") return [](double a) { return std::max(a, 0.0); };
  if (op == "Round") return [](double a) { return std::nearbyint(a); };
  if (op == "Sign") return [](double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0; };
  if (op == "Identity" || op == "CastLike") return [](double a) { return a; };
  return nullptr;
}

// Along the last axis: each index picks from the row that it stands in.
Known gathered_along_rows(const Known& x, const Known& index) {
  Known y = filled(index.shape, 0, x.whole);
  const std::vector<int64_t> places = index.wholes();
  const int64_t columns = index.shape.back(), all = x.shape.back();
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = places[i] < 0 ? places[i] + all : places[i];
    user_check(place >= 0 && place < all, "there is no place {} of {}", places[i], all);
    y.numbers[i] = x.numbers[static_cast<size_t>(static_cast<int64_t>(i) / columns * all + place)];
  }
  return y;
}

// x where the mask is not zero, else y.
Known chosen_by(const Known& mask, const Known& x, const Known& y) {
  const Shape all = broadcast(broadcast(mask.shape, x.shape, "Where"), y.shape, "Where");
  const Known holds = repeated(mask, all), other = repeated(y, all);
  Known chosen = repeated(x, all);
  for (size_t i = 0; i < chosen.numbers.size(); ++i) {
    if (holds.numbers[i] == 0) chosen.numbers[i] = other.numbers[i];
  }
  return chosen;
}

// To the type of that number in the format (1, 10, 11, 16: floating types; 9: bool).
Known cast(Known x, int64_t to) {
  x.whole = to != 1 && to != 10 && to != 11 && to != 16;
  for (double& number : x.numbers) {
    number = to == 9 ? (number != 0 ? 1 : 0) : x.whole ? std::trunc(number) : number;
  }
  return x;
}

}  // namespace

bool OnnxLowering::lower_known(const OnnxNode& node) {
  if (lower_extents(node)) return true;
  if (node.in.empty() || !all_known()) return false;
  return lower_known_elements(node) || lower_known_moves(node) || lower_known_lists(node) ||
         lower_known_counts(node);
}

// Nodes whose results are known even where the numbers of their inputs are not.
bool OnnxLowering::lower_extents(const OnnxNode& node) {
  if (node.op == "Constant") {
    for (const auto& [key, value] : node.attributes) {
      if (key == "value" && !value.tensors.empty()) {
        const OnnxTensor& t = value.tensors[0];
        user_check(t.refused.empty(), "{}", t.refused);
        return set_known(known_of(t)), true;
      }
      if (key == "value_int")
        return set_known({{}, {static_cast<double>(value.whole)}, true}), true;
      if (key == "value_float") return set_known({{}, {value.real}, false}), true;
      if (key == "value_ints") return set_known(known_list(value.wholes)), true;
      if (key == "value_floats") {
        return set_known({{std::ssize(value.reals)}, value.reals, false}), true;
      }
    }
    user_error("it has no numbers");
  }
  if (node.op == "Shape") {
    const Shape all = shape(name(0));
    const int64_t rank = all.rank();
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const int64_t begin = place(node.whole("start", 0)), end = place(node.whole("end", rank));
    std::vector<int64_t> dims(all.dims().begin(), all.dims().end());
    dims = {dims.begin() + begin, dims.begin() + std::max(begin, end)};
    return set_known(known_list(dims)), true;
  }
  if (node.op == "Size") {
    return set_known({{}, {static_cast<double>(shape(name(0)).elements())}, true}), true;
  }
  return false;
}

bool OnnxLowering::lower_known_elements(const OnnxNode& node) {
  const Known& x = known_in(0);
  const bool two = node.in.size() == 2;
  const Combine combine = two ? combine_of(node.op, x.whole && known_in(1).whole) : nullptr;
  if (combine != nullptr) {
    return set_known(combined(x, known_in(1), combine)), true;
  }
  if (const Change change = change_of(node.op)) {
    Known y = x;
    for (double& number : y.numbers) number = change(number);
    if (node.op == "CastLike") y.whole = known_in(1).whole;
    return set_known(std::move(y)), true;
  }
  if (node.op == "Cast") return set_known(cast(x, node.whole("to", 1))), true;
  if (node.op == "Where") return set_known(chosen_by(x, known_in(1), known_in(2))), true;
  if ((node.op == "Max" || node.op == "Min") && node.in.size() == 1) {
    return set_known(Known(x)), true;
  }
  return false;
}

bool OnnxLowering::lower_known_moves(const OnnxNode& node) {
  const Known& x = known_in(0);
  const int rank = x.shape.rank();
  if (node.op == "Gather") {
    return set_known(gathered(x, known_in(1), axis_of(node.whole("axis", 0), rank))), true;
  }
  if (node.op == "GatherElements") {
    const Known& index = known_in(1);
    const int axis = axis_of(node.whole("axis", 0), rank);
    user_check(axis == rank - 1 && index.shape.rank() == rank &&
                   index.shape.product(0, axis) == x.shape.product(0, axis),
               "it gathers along another axis than the last");
    return set_known(gathered_along_rows(x, index)), true;
  }
  if (node.op == "GatherND") {
    user_check(node.whole("batch_dims", 0) == 0, "it gathers for each of a batch");
    return set_known(gathered_by_places(x, known_in(1))), true;
  }
  if (node.op == "ScatterND") {
    user_check(node.text("reduction", "none") == "none", "it adds up what it scatters");
    return set_known(scattered(x, known_in(1), known_in(2))), true;
  }
  if (node.op == "Concat") {
    std::vector<Known> parts;
    for (size_t i = 0; i < node.in.size(); ++i) parts.push_back(known_in(i));
    return set_known(joined(parts, axis_of(node.whole("axis", 0), rank))), true;
  }
  if (node.op == "Expand") {
    const Shape to(std::span<const int64_t>(known_in(1).wholes()));
    return set_known(repeated(x, broadcast(x.shape, to, "Expand"))), true;
  }
  if (node.op == "Transpose") {
    std::vector<int64_t> reversed;
    for (int axis = rank; axis-- > 0;) reversed.push_back(axis);
    return set_known(turned(x, node.wholes("perm", reversed))), true;
  }
  if (node.op == "Trilu") {
    const int64_t diagonal = has(1) ? known_in(1).wholes().at(0) : 0;
    return set_known(triangle(x, diagonal, node.whole("upper", 1) != 0)), true;
  }
  if (node.op == "Slice") {
    Known y = x;
    const std::vector<int64_t> begins = has(1) ? known_in(1).wholes() : node.wholes("starts", {});
    const std::vector<int64_t> ends = has(2) ? known_in(2).wholes() : node.wholes("ends", {});
    const std::vector<int64_t> axes = has(3) ? known_in(3).wholes() : node.wholes("axes", {});
    const std::vector<int64_t> steps = has(4) ? known_in(4).wholes() : std::vector<int64_t>{};
    for (size_t i = 0; i < begins.size(); ++i) {
      const int axis = axis_of(i < axes.size() ? axes[i] : static_cast<int64_t>(i), rank);
      y = sliced(y, axis, begins[i], ends.at(i), i < steps.size() ? steps[i] : 1);
    }
    return set_known(std::move(y)), true;
  }
  return false;
}

}  // namespace thimble
