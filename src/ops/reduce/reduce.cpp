// reduce(x) -> y: the sum, mean or largest element over some axes. attrs: axes (integer list), kind
// ("sum", "mean" or "max"; default sum), keep_dims (0 or 1, default 0): whether reduced axes stay
// with extent 1.
#include <algorithm>
#include <cmath>

#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"
#include "ops/work.h"

namespace thimble {
namespace {

enum class Kind : uint8_t { sum, mean, max };

Kind kind_of(const Attrs& attrs) {
  const std::string_view name = attrs.text("kind", "sum");
  user_check(name == "sum" || name == "mean" || name == "max",
             "[reduce] knows sum, mean and max, not '{}'", name);
  return name == "sum" ? Kind::sum : name == "mean" ? Kind::mean : Kind::max;
}

// The walk over x: `kept` has extent 1 where x is reduced, `reduced` where it is kept.
struct Walk {
  Shape kept, reduced;
};

Walk walk_of(const Shape& x, const Attrs& attrs) {
  Walk walk{x, x};
  uint32_t seen = 0;
  for (const int64_t axis : attrs.integers("axes")) {
    user_check(axis >= 0 && axis < x.rank() && ((seen >> axis) & 1u) == 0,
               "[reduce] axes must name axes of {} once each; {} is wrong", to_string(x), axis);
    seen |= 1u << axis;
  }
  for (int axis = 0; axis < x.rank(); ++axis) {
    Shape& one = ((seen >> axis) & 1u) != 0 ? walk.kept : walk.reduced;
    one = with_extent(one, axis, 1);
  }
  return walk;
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("reduce", inputs);
  const Shape& x = inputs[0].shape;
  const Walk walk = walk_of(x, attrs);
  user_check(kind_of(attrs) == Kind::sum || walk.reduced.elements() > 0,
             "[reduce] nothing has no mean and no maximum: {}", to_string(x));
  if (attrs.integer("keep_dims", 0) != 0) return {{walk.kept, inputs[0].dtype}};
  const std::vector<int64_t>& axes = attrs.integers("axes");
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) dims.push_back(x[axis]);
  }
  return {{Shape(std::span<const int64_t>(dims)), inputs[0].dtype}};
}

// Scales before broadcasting, on the smaller tensor.
void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Kind kind = kind_of(g.attrs());
  user_check(kind != Kind::max, "[reduce] max has no gradient; max_pool has");
  const Shape x = g.build().shape(g.input(0));
  const Walk walk = walk_of(x, g.attrs());
  ValueId dy = g.upstream();
  if (kind == Kind::mean) {
    const double share = 1.0 / static_cast<double>(walk.reduced.elements());
    dy = g.build().op("scale", {dy}, {{"factor", share}});
  }
  const auto list = [](const Shape& shape) {
    return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
  };
  if (g.build().shape(dy) != walk.kept) {
    dy = g.build().op("reshape", {dy}, {{"shape", list(walk.kept)}});
  }
  g.give(0, g.build().op("broadcast_to", {dy}, {{"shape", list(x)}}));
}

// Sums in double: a bias gradient adds millions of elements one after the other.
void reference(const KernelArgs& args) {
  const Shape& shape = args.inputs[0].type.shape;
  const Kind kind = kind_of(*args.attrs);
  const Walk walk = walk_of(shape, *args.attrs);
  const std::array<Strides, 1> strides = {row_major(shape)};
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for_each_element(walk.kept, strides, [&](int64_t at, const std::array<int64_t, 1>& base) {
      double result = 0;
      for_each_element(walk.reduced, strides, [&](int64_t i, const std::array<int64_t, 1>& step) {
        const auto value = static_cast<double>(x[base[0] + step[0]]);
        if (kind != Kind::max) {
          result += value;
        } else if (i == 0 || value > result || std::isnan(value)) {
          result = value;
        }
      });
      if (kind == Kind::mean) result /= static_cast<double>(walk.reduced.elements());
      store(y, at, static_cast<Accumulator<T>>(result), args.adds_into(0));
    });
  });
}

std::vector<Sample> samples() {
  const auto over = [](std::vector<int64_t> axes, const char* kind, int64_t keep_dims) {
    return Attrs{{"axes", std::move(axes)}, {"kind", kind}, {"keep_dims", keep_dims}};
  };
  return {
      {.inputs = {{{2, 3, 4, 8}}}, .attrs = over({0, 1, 2}, "sum", 0), .differentiate = {0}},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({1}, "sum", 1), .differentiate = {0}},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({0, 2}, "mean", 0), .differentiate = {0}},
      {.inputs = {{{5, 7}}}, .attrs = over({0, 1}, "mean", 0), .differentiate = {0}},
      {.inputs = {{{5, 7}}}, .attrs = over({1}, "mean", 1), .differentiate = {0}},
      {.inputs = {{{4, 6, 3}}}, .attrs = over({1}, "max", 0)},
      {.inputs = {{{3, 4}}}, .attrs = over({}, "sum", 0), .differentiate = {0}},
      {.inputs = {{{16, 8}}}, .attrs = over({0}, "sum", 0), .accumulate = 1},
  };
}

// Over the rows, sums are sums and means are means; over other axes, each row keeps its own.
RowFlow rows(const RowCall& call, size_t) {
  const RowFlow& flow = call.flows[0];
  const Kind kind = kind_of(call.attrs);
  if (is_sum(flow)) return kind == Kind::max ? RowFlow{.kind = RowFlow::Kind::of_sums} : flow;
  if (flow.kind != RowFlow::Kind::rows) return kMixed;
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  const std::vector<int64_t>& axes = call.attrs.integers("axes");
  const std::optional<RowAxis> at = row_axis(flow, x, call.rows);
  const bool all = std::ssize(axes) == x.rank();
  if (!at && !all) return kMixed;
  if (all || std::ranges::find(axes, int64_t{at->axis}) != axes.end()) {
    if (kind == Kind::max) return kMixed;
    if (kind == Kind::mean) return {.kind = RowFlow::Kind::mean};
    const auto each = static_cast<double>(x.elements()) /
                      static_cast<double>(std::max<int64_t>(1, y.elements() * call.rows));
    return {.kind = RowFlow::Kind::sum, .entries = each};
  }
  const bool keeps = call.attrs.integer("keep_dims", 0) != 0;
  const auto gone = std::ranges::count_if(axes, [&](int64_t axis) { return axis < at->axis; });
  return along_axis(*at, keeps ? at->axis : at->axis - static_cast<int>(gone), y);
}

}  // namespace

extern const OpDef op_reduce{
    .name = "reduce",
    .summary = "sum, mean or maximum over axes",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<1>,
    .samples = samples,
    .rows = rows,
    .reduces = true,
    .accumulates = 1,
};

}  // namespace thimble
