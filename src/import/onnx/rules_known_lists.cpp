// Sums, repetitions and places of numbers that are known.
#include <algorithm>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

// Over one axis, which stays with an extent of 1.
Known folded(const Known& x, int axis, double (*combine)(double, double)) {
  const int64_t outer = x.shape.product(0, axis), extent = x.shape[axis];
  const int64_t inner = x.shape.product(axis + 1, x.shape.rank());
  user_check(extent >= 1, "it sums up nothing");
  std::vector<int64_t> dims = dims_of(x.shape);
  dims[static_cast<size_t>(axis)] = 1;
  Known y = filled(Shape(std::span<const int64_t>(dims)), 0, x.whole);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = x.numbers[static_cast<size_t>(o * extent * inner + i)];
      for (int64_t at = 1; at < extent; ++at) {
        sum = combine(sum, x.numbers[static_cast<size_t>((o * extent + at) * inner + i)]);
      }
      y.numbers[static_cast<size_t>(o * inner + i)] = sum;
    }
  }
  return y;
}

}  // namespace

bool OnnxLowering::lower_known_lists(const OnnxNode& node) {
  const Known& x = known_in(0);
  const bool product = node.op == "ReduceProd", sum = node.op == "ReduceSum";
  const bool mean = node.op == "ReduceMean", top = node.op == "ReduceMax";
  if (product || sum || mean || top || node.op == "ReduceMin") {
    std::vector<int64_t> axes = axes_of(1);
    for (int64_t& axis : axes) axis = axis_of(axis, x.shape.rank());
    if (axes.empty() && node.whole("noop_with_empty_axes", 0) == 0) {
      for (int axis = 0; axis < x.shape.rank(); ++axis) axes.push_back(axis);
    }
    Known y = x;
    int64_t count = 1;
    for (const int64_t axis : axes) {
      count *= x.shape[static_cast<int>(axis)];
      y = folded(
          y, static_cast<int>(axis),
          product       ? +[](double a, double b) { return a * b; }
          : sum || mean ? +[](double a, double b) { return a + b; }
          : top         ? +[](double a, double b) { return std::max(a, b); }
                        : +[](double a, double b) { return std::min(a, b); });
    }
    if (mean) {
      for (double& number : y.numbers) number /= static_cast<double>(count);
    }
    if (node.whole("keepdims", 1) == 0) {
      std::vector<int64_t> dims;
      for (int axis = 0; axis < x.shape.rank(); ++axis) {
        if (std::ranges::find(axes, axis) == axes.end()) dims.push_back(x.shape[axis]);
      }
      y.shape = Shape(std::span<const int64_t>(dims));
    }
    return set_known(std::move(y)), true;
  }
  if (node.op == "Tile") {
    const std::vector<int64_t> times = known_in(1).wholes();
    user_check(std::ssize(times) == x.shape.rank(), "it repeats {} of {} axes", times.size(),
               x.shape.rank());
    Known y = x;
    for (int axis = 0; axis < x.shape.rank(); ++axis) {
      const int64_t count = times[static_cast<size_t>(axis)];
      user_check(count >= 1 && count <= 1 << 20, "it repeats an axis {} times", count);
      y = joined(std::vector<Known>(static_cast<size_t>(count), y), axis);
    }
    return set_known(std::move(y)), true;
  }
  if (node.op == "NonZero") {
    std::vector<std::vector<double>> places(static_cast<size_t>(std::max(1, x.shape.rank())));
    for (int64_t at = 0; at < x.elements(); ++at) {
      if (x.numbers[static_cast<size_t>(at)] == 0) continue;
      int64_t rest = at;
      for (int axis = x.shape.rank(); axis-- > 0;) {
        places[static_cast<size_t>(axis)].push_back(static_cast<double>(rest % x.shape[axis]));
        rest /= x.shape[axis];
      }
    }
    Known y = {{std::ssize(places), std::ssize(places[0])}, {}, true};
    for (const std::vector<double>& axis : places) {
      y.numbers.insert(y.numbers.end(), axis.begin(), axis.end());
    }
    return set_known(std::move(y)), true;
  }
  if (node.op == "Clip") {
    const double low = has(1) ? known_in(1).numbers.at(0) : node.real("min", -INFINITY);
    const double high = has(2) ? known_in(2).numbers.at(0) : node.real("max", INFINITY);
    Known y = x;
    for (double& number : y.numbers) number = std::min(high, std::max(low, number));
    return set_known(std::move(y)), true;
  }
  if ((node.op == "Max" || node.op == "Min" || node.op == "Sum") && node.in.size() > 2) {
    Known y = x;
    for (size_t i = 1; i < node.in.size(); ++i) {
      y = combined(
          y, known_in(i),
          node.op == "Sum"   ? +[](double a, double b) { return a + b; }
          : node.op == "Max" ? +[](double a, double b) { return std::max(a, b); }
                             : +[](double a, double b) { return std::min(a, b); });
    }
    return set_known(std::move(y)), true;
  }
  return false;
}

// Lists that are counted or filled.
bool OnnxLowering::lower_known_counts(const OnnxNode& node) {
  const Known& x = known_in(0);
  if (node.op == "Range") {
    const double start = x.numbers.at(0), end = known_in(1).numbers.at(0),
                 step = known_in(2).numbers.at(0);
    user_check(step != 0 && (end - start) / step < 1e6, "it counts without end");
    Known y = {{}, {}, x.whole};
    for (double at = start; step > 0 ? at < end : at > end; at += step) y.numbers.push_back(at);
    y.shape = {std::ssize(y.numbers)};
    return set_known(std::move(y)), true;
  }
  if (node.op == "ConstantOfShape") {
    const auto value = node.attributes.find("value");
    const bool given = value != node.attributes.end() && !value->second.tensors.empty();
    const bool whole = given && value->second.tensors[0].whole;
    return set_known(filled(Shape(std::span<const int64_t>(x.wholes())),
                            given ? value->second.tensors[0].at(0) : 0, whole)),
           true;
  }
  if (node.op == "CumSum") {
    user_check(axis_of(known_in(1).wholes().at(0), x.shape.rank()) == x.shape.rank() - 1,
               "it sums along another axis than the last");
    Known y = x;
    const size_t columns = static_cast<size_t>(std::max<int64_t>(1, x.shape.back()));
    for (size_t i = 0; i < y.numbers.size(); ++i) {
      if (i % columns != 0) y.numbers[i] += y.numbers[i - 1];
    }
    return set_known(std::move(y)), true;
  }
  return false;
}

}  // namespace thimble
