// Norms, and resizing along axes.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/onnx_lowering.h"

namespace thimble {

bool OnnxLowering::lower_norm(const OnnxNode& node) {
  const auto x = [&] { return operand(as_value(name(0))); };
  const auto axis = [&](int64_t usual) {
    return int64_t{axis_of(node.whole("axis", usual), shape(name(0)).rank())};
  };
  const double epsilon = node.real("epsilon", 1e-5);
  if (node.op == "BatchNormalization") {
    // A batch norm is trained whatever the file says of it, unless the caller wants it frozen.
    Attrs attrs = {{"momentum", 1 - node.real("momentum", 0.9)}, {"epsilon", epsilon}};
    if (choices_.norms == "frozen") attrs.set("training", int64_t{0});
    emit("batch_norm", {x(), optional(1), optional(2), optional(3), optional(4)}, attrs);
  } else if (node.op == "LayerNormalization") {
    emit("layer_norm", {x(), optional(1), optional(2)},
         {{"axes", shape(name(0)).rank() - axis(-1)}, {"epsilon", epsilon}});
  } else if (node.op == "RMSNormalization" ||
             node.op == "com.microsoft.SimplifiedLayerNormalization") {
    emit("rms_norm", {x(), optional(1)},
         {{"axes", shape(name(0)).rank() - axis(-1)}, {"epsilon", epsilon}});
  } else if (node.op == "com.microsoft.SkipLayerNormalization") {
    Operand sum = emitted("add", {x(), operand(name(1))});
    if (has(4)) sum = emitted("add", {sum, operand(name(4))});
    emit("layer_norm", {sum, optional(2), optional(3)},
         {{"axes", int64_t{1}}, {"epsilon", node.real("epsilon", 1e-12)}});
    if (node.out.size() > 3 && !node.out[3].empty()) l_.alias(node.out[3], sum.value);
  } else if (node.op == "InstanceNormalization" || node.op == "GroupNormalization") {
    const Shape from = shape(name(0));
    user_check(from.rank() >= 3, "it wants [N,C,...]");
    const bool by_channel = node.op == "InstanceNormalization";
    const int64_t groups = by_channel ? from[1] : node.whole("num_groups", 1);
    user_check(by_channel || onnx_.opset >= 21 || shape(name(1))[0] == from[1],
               "its scales are one a group; export with opset 21");
    const std::string image =
        reshaped(as_value(name(0)), {from[0], from[1], 1, from.product(2, from.rank())});
    const Operand y = emitted("group_norm", {{image, {}}, optional(1), optional(2)},
                              {{"groups", groups}, {"epsilon", epsilon}});
    reshaped(y.value, from, node.out[0]);
  } else if (node.op == "LpNormalization") {
    const int64_t p = node.whole("p", 2);
    user_check(p == 1 || p == 2, "it divides by a norm of order {}", p);
    const Attrs over = {{"axes", std::vector<int64_t>{axis(-1)}}, {"keep", int64_t{1}}};
    const Operand sum = emitted("sum", {emitted(p == 1 ? "abs" : "square", {x()})}, over);
    emit("div", {x(), p == 1 ? sum : emitted("sqrt", {sum})});
  } else if (node.op == "ai.onnx.ml.Normalizer") {
    const std::string_view by = node.text("norm", "MAX");
    const std::vector<int64_t> last = {shape(name(0)).rank() - 1};
    const Attrs over = {{"axes", last}, {"keep", int64_t{1}}};
    if (by == "L1") {
      emit("div", {x(), emitted("sum", {emitted("abs", {x()})}, over)});
    } else if (by == "L2") {
      emit("div", {x(), emitted("sqrt", {emitted("sum", {emitted("square", {x()})}, over)})});
    } else {
      emit("div", {x(), {largest(name(0), last), {}}});
    }
  } else if (node.op == "ai.onnx.ml.ZipMap") {
    l_.alias(node.out[0], as_value(name(0)));
  } else if (node.op == "ai.onnx.ml.Scaler") {
    const auto list = [&](const char* key) {
      const std::vector<double>& all = node.attributes.at(key).reals;
      return Operand{constant_of({{std::ssize(all)}, all, false}, fresh()), {}};
    };
    emit("mul", {emitted("sub", {x(), list("offset")}), list("scale")});
  } else if (node.op == "MeanVarianceNormalization") {
    const Attrs over = {{"axes", node.wholes("axes", {0, 2, 3})}, {"keep", int64_t{1}}};
    const Operand off = emitted("sub", {x(), emitted("mean", {x()}, over)});
    const Operand variance = emitted("mean", {emitted("square", {off})}, over);
    emit("div", {off, emitted("sqrt", {emitted("add", {variance, {"", 1e-9}})})});
  } else if (node.op == "LRN") {
    const Shape from = shape(name(0));
    const int64_t size = node.whole("size", 1);
    user_check(from.rank() >= 2 && size >= 1, "it goes over {} channels", size);
    Known near = filled({from[1], from[1]}, 0, false);
    const int64_t before = (size - 1) / 2, behind = size - 1 - before;
    for (int64_t to = 0; to < from[1]; ++to) {
      for (int64_t at = std::max<int64_t>(0, to - before); at <= std::min(from[1] - 1, to + behind);
           ++at) {
        near.numbers[static_cast<size_t>(at * from[1] + to)] = 1;
      }
    }
    const std::string sums = by_matrix(emitted("square", {x()}).value, 1, near);
    const double alpha = node.real("alpha", 1e-4) / static_cast<double>(size);
    const Operand scale =
        emitted("add", {emitted("mul", {{sums, {}}, {"", alpha}}), {"", node.real("bias", 1)}});
    emit("mul", {x(), emitted("pow", {scale}, {{"exponent", -node.real("beta", 0.75)}})});
  } else {
    return false;
  }
  return true;
}

namespace {

// How an axis of `from` becomes one of `to`, `scale` times as long, as ONNX's Resize counts.
struct Resizing {
  std::string_view mode, where, nearest;
  double cubic = -0.75;
  bool excludes_outside = false;

  double place(int64_t at, int64_t from, int64_t to, double scale) const {
    const auto x = static_cast<double>(at);
    if (where == "asymmetric") return x / scale;
    if (where == "align_corners") {
      return to == 1 ? 0 : x * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    }
    if (where == "pytorch_half_pixel" && to == 1) return 0;
    if (where == "half_pixel_symmetric") {
      const double whole = scale * static_cast<double>(from);
      const double offset = static_cast<double>(from) / 2 * (1 - static_cast<double>(to) / whole);
      return offset + (x + 0.5) / scale - 0.5;
    }
    user_check(where == "half_pixel" || where == "pytorch_half_pixel", "it resizes by '{}'", where);
    return (x + 0.5) / scale - 0.5;
  }

  int64_t nearest_to(double place, int64_t from) const {
    double whole = 0;
    if (nearest == "floor")
      whole = std::floor(place);
    else if (nearest == "ceil")
      whole = std::ceil(place);
    else if (nearest == "round_prefer_ceil")
      whole = std::floor(place + 0.5);
    else
      whole = std::ceil(place - 0.5);
    return std::clamp<int64_t>(static_cast<int64_t>(whole), 0, from - 1);
  }

  Known matrix(int64_t from, int64_t to, double scale) const {
    Known shares = filled({from, to}, 0, false);
    for (int64_t at = 0; at < to; ++at) {
      const double x = place(at, from, to, scale), floor = std::floor(x), t = x - floor;
      std::array<double, 4> weights = {0, 1 - t, t, 0};
      if (mode == "cubic") {
        const double a = cubic;
        const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        weights = {far(t + 1), near(t), near(1 - t), far(2 - t)};
      }
      double all = 0;
      for (int k = 0; k < 4; ++k) {
        const int64_t read = static_cast<int64_t>(floor) + k - 1;
        if (excludes_outside && (read < 0 || read >= from)) weights[static_cast<size_t>(k)] = 0;
        all += weights[static_cast<size_t>(k)];
      }
      for (int k = 0; k < 4; ++k) {
        const int64_t read = std::clamp<int64_t>(static_cast<int64_t>(floor) + k - 1, 0, from - 1);
        shares.numbers[static_cast<size_t>(read * to + at)] +=
            weights[static_cast<size_t>(k)] / all;
      }
    }
    return shares;
  }
};

}  // namespace

void OnnxLowering::resize(const OnnxNode& node) {
  const Shape x = shape(name(0));
  const bool first = node.op == "Upsample" || node.in.size() == 2;  // of opset 10 and before
  std::vector<int64_t> axes = node.wholes("axes", {});
  if (axes.empty()) {
    for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  }
  std::vector<double> scales(static_cast<size_t>(x.rank()), 1);
  std::vector<int64_t> to = dims_of(x);
  const bool sized = !first && has(3);
  std::vector<double> given;
  if (sized) {
    for (const int64_t extent : known_in(3).wholes()) given.push_back(static_cast<double>(extent));
  } else if (node.op == "Upsample" && !has(1)) {
    given = node.attributes.at("scales").reals;
  } else {
    given = known_in(first ? 1 : 2).numbers;
  }
  user_check(given.size() == axes.size(), "it has no scale for every axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(axes[i], x.rank());
    const auto from = static_cast<double>(x[axis]);
    user_check(given[i] > 0 && given[i] < 1e6, "it resizes by {}", given[i]);
    const double extent = sized ? given[i] : std::floor(given[i] * from);
    to[static_cast<size_t>(axis)] = static_cast<int64_t>(extent);
    scales[static_cast<size_t>(axis)] = sized ? given[i] / from : given[i];
    user_check(extent >= 1, "it makes {} of {}", extent, from);
  }
  user_check(node.text("keep_aspect_ratio_policy", "stretch") == "stretch" &&
                 node.whole("antialias", 0) == 0,
             "it keeps the aspect ratio, or antialiases");
  std::string_view mode = node.text("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  const Resizing how = {
      .mode = mode,
      .where = first ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel"),
      .nearest = first ? "floor" : node.text("nearest_mode", "round_prefer_floor"),
      .cubic = node.real("cubic_coeff_a", -0.75),
      .excludes_outside = node.whole("exclude_outside", 0) != 0};
  user_check(mode == "nearest" || mode == "linear" || mode == "cubic", "it resizes by '{}'", mode);
  const bool images = x.rank() == 4 && to[0] == x[0] && to[1] == x[1];
  // The ways that there are kernels for.
  bool plain = images;
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(x.rank()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const size_t a = static_cast<size_t>(axis);
    const bool exact = scales[a] * static_cast<double>(x[axis]) == static_cast<double>(to[a]);
    if (mode == "linear") {
      const bool half =
          how.where == "half_pixel" || (how.where == "pytorch_half_pixel" && to[a] > 1);
      plain = plain && ((exact && half) || how.where == "align_corners");
    } else if (mode == "nearest") {
      for (int64_t at = 0; at < to[a]; ++at) {
        const int64_t read = how.nearest_to(how.place(at, x[axis], to[a], scales[a]), x[axis]);
        places[a].push_back(read);
        plain = plain && read == at * x[axis] / to[a];
      }
    } else {
      plain = false;
    }
  }
  if (plain) {
    return emit("resize", {operand(name(0))},
                {{"size", std::vector<int64_t>{to[2], to[3]}},
                 {"mode", std::string(mode == "nearest"              ? "nearest"
                                      : how.where == "align_corners" ? "corners"
                                                                     : "bilinear")}});
  }
  std::string y = as_value(name(0));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const size_t a = static_cast<size_t>(axis);
    if (to[a] == x[axis] && scales[a] == 1) continue;
    y = mode == "nearest" ? picked(y, axis, places[a])
                          : by_matrix(y, axis, how.matrix(x[axis], to[a], scales[a]));
  }
  l_.alias(node.out[0], y);
}

}  // namespace thimble
