// Pooling with windows of any shape, and over all of an image.
#include <algorithm>
#include <numeric>

#include "import/onnx/onnx_lowering.h"

namespace thimble {
namespace {

std::vector<int64_t> spatial_axes(const Shape& x) {
  std::vector<int64_t> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

bool OnnxLowering::lower_pooling(const OnnxNode& node) {
  if (node.op == "GlobalAveragePool") {
    const Shape x = shape(name(0));
    if (x.rank() == 4) {
      emit("resize", {operand(name(0))},
           {{"size", std::vector<int64_t>{1, 1}}, {"mode", std::string("average")}});
    } else {
      emit("mean", {operand(name(0))}, {{"axes", spatial_axes(x)}, {"keep", int64_t{1}}});
    }
  } else if (node.op == "GlobalMaxPool") {
    l_.alias(node.out[0], largest(name(0), spatial_axes(shape(name(0)))));
  } else if (node.op == "MaxPool" || node.op == "AveragePool") {
    pool(node);
  } else {
    return false;
  }
  return true;
}

// Squares go to the kernels that there are for them; other windows are taken axis by axis.
void OnnxLowering::pool(const OnnxNode& node) {
  user_check(node.out.size() == 1 || node.out[1].empty(), "it makes places, too");
  const bool largest_of = node.op == "MaxPool";
  const Shape x = shape(name(0));
  Windows w = windows_of(node, x, node.wholes("kernel_shape", {}));
  const size_t axes = w.kernel.size();
  const bool whole_windows = node.whole("ceil_mode", 0) == 0;
  const bool counts_padding = node.whole("count_include_pad", 0) != 0;
  std::vector<int64_t> windows(axes), more(axes, 0);  // numbers beyond the padding that are reached
  for (size_t a = 0; a < axes; ++a) {
    const int64_t extent = x[static_cast<int>(a) + 2] + w.before[a] + w.behind[a];
    const int64_t reach = (w.kernel[a] - 1) * w.dilation[a] + 1;
    user_check(reach <= extent || !whole_windows, "a window of {} does not fit {}", reach, extent);
    const int64_t room = extent - reach;
    windows[a] = (whole_windows ? room : room + w.stride[a] - 1) / w.stride[a] + 1;
    // The last window begins inside of the image, or of the padding before it.
    if (!whole_windows && (windows[a] - 1) * w.stride[a] >= extent - w.behind[a]) --windows[a];
    more[a] = std::max<int64_t>(0, (windows[a] - 1) * w.stride[a] + reach - extent);
  }
  const auto same = [&](const std::vector<int64_t>& list, int64_t as) {
    return std::ranges::all_of(list, [&](int64_t one) { return one == as; });
  };
  const bool square = axes == 2 && same(w.kernel, w.kernel[0]) && same(w.stride, w.stride[0]) &&
                      same(w.dilation, 1);
  const bool padded_alike = same(w.before, w.before[0]) && same(w.behind, w.before[0]);
  const bool pads = !same(w.before, 0) || !same(w.behind, 0);
  const double beyond = largest_of ? far_below() : 0;
  if (square && same(more, 0) && (largest_of || !pads || counts_padding)) {
    std::string from = name(0);
    int64_t padding = w.before[0];
    if (!padded_alike || 2 * padding > w.kernel[0]) {
      for (size_t a = 0; a < axes; ++a) {
        from = padded(from, static_cast<int>(a) + 2, w.before[a], w.behind[a], beyond);
      }
      padding = 0;
    }
    return emit(largest_of ? "max_pool" : "avg_pool", {operand(from)},
                {{"kernel", w.kernel},
                 {"stride", w.stride},
                 {"padding", std::vector<int64_t>{padding, padding}}});
  }
  std::string y = as_value(name(0));
  for (size_t a = 0; a < axes; ++a) {
    const int axis = static_cast<int>(a) + 2;
    const int64_t extent = x[axis];
    if (w.kernel[a] == 1 && w.stride[a] == 1 && w.before[a] == 0 && w.behind[a] == 0) continue;
    if (largest_of) {
      user_check(w.kernel[a] <= 64,
                 "it takes the largest of {} numbers along one axis; 64 are the most", w.kernel[a]);
      const std::string wide = padded(y, axis, w.before[a], w.behind[a] + more[a], beyond);
      std::string best;
      for (int64_t k = 0; k < w.kernel[a]; ++k) {
        const int64_t begin = k * w.dilation[a];
        const std::string seen =
            stepped(wide, axis, begin, begin + (windows[a] - 1) * w.stride[a] + 1, w.stride[a]);
        best = best.empty() ? seen : larger({best, {}}, {seen, {}}, false);
      }
      y = best;
      continue;
    }
    Known shares = filled({extent, windows[a]}, 0, false);
    for (int64_t to = 0; to < windows[a]; ++to) {
      const int64_t begin = to * w.stride[a] - w.before[a];
      int64_t inside = 0, counted = 0;
      for (int64_t k = 0; k < w.kernel[a]; ++k) {
        const int64_t at = begin + k * w.dilation[a];
        inside += at >= 0 && at < extent ? 1 : 0;
        counted += at < extent + w.behind[a] ? 1 : 0;
      }
      const int64_t count = counts_padding ? counted : inside;
      for (int64_t k = 0; k < w.kernel[a]; ++k) {
        const int64_t at = begin + k * w.dilation[a];
        if (at < 0 || at >= extent) continue;
        shares.numbers[static_cast<size_t>(at * windows[a] + to)] =
            1 / static_cast<double>(std::max<int64_t>(1, count));
      }
    }
    y = by_matrix(y, axis, shares);
  }
  l_.alias(node.out[0], y);
}

}  // namespace thimble
