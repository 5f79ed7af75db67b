// concat(x0, x1, ...) -> y: the inputs behind each other along one axis, any dtype; attr axis.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/axis_part.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(!inputs.empty(), "[concat] takes at least one input");
  const int axis = axis_of("concat", attrs, inputs[0].shape);
  int64_t extent = 0;
  for (const TensorType& input : inputs) {
    user_check(input.shape.rank() == inputs[0].shape.rank() && input.dtype == inputs[0].dtype &&
                   with_extent(input.shape, axis, 1) == with_extent(inputs[0].shape, axis, 1),
               "[concat] {} and {} differ in more than axis {}", to_string(inputs[0]),
               to_string(input), axis);
    extent += input.shape[axis];
  }
  return {{with_extent(inputs[0].shape, axis, extent), inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  const int64_t axis = g.attrs().integer("axis");
  int64_t begin = 0;
  for (size_t i = 0; i < g.node().inputs.size(); ++i) {
    const int64_t end = begin + g.build().shape(g.input(i))[static_cast<int>(axis)];
    if (g.wants(i)) {
      g.give(i, g.build().op("slice", {g.upstream()}, slice_attrs(axis, begin, end)));
    }
    begin = end;
  }
}

void reference(const KernelArgs& args) {
  const Shape& shape = args.outputs[0].type.shape;
  const int axis = axis_of("concat", *args.attrs, shape);
  const int64_t outer = shape.product(0, axis), inner = shape.product(axis + 1, shape.rank());
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    T* y = args.outputs[0].as<T>();
    int64_t begin = 0;
    for (const TensorRef& input : args.inputs) {
      const T* x = input.as<T>();
      const int64_t part = input.type.shape[axis] * inner;
      for (int64_t o = 0; o < outer; ++o) {
        T* to = y + o * shape[axis] * inner + begin;
        for (int64_t i = 0; i < part; ++i) to[i] = x[o * part + i];
      }
      begin += part;
    }
  });
}

std::vector<Sample> samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {
      {.inputs = {{{2, 5}}, {{3, 5}}}, .attrs = along(0), .differentiate = {0, 1}},
      {.inputs = {{{2, 1, 3}}, {{2, 4, 3}}, {{2, 2, 3}}},
       .attrs = along(1),
       .differentiate = {0, 1, 2}},
      {.inputs = {{{4, 8}}, {{4, 3}}}, .attrs = along(1), .differentiate = {0, 1}},
      {.inputs = {{{6}}}, .attrs = along(0), .differentiate = {0}},
  };
}

// Batches behind each other along the axis of the rows, or parts of every row along another one.
RowFlow rows(const RowCall& call, size_t) {
  std::optional<RowAxis> all;
  const int64_t axis = call.attrs.integer("axis");
  bool fixed = false;
  for (size_t i = 0; i < call.flows.size(); ++i) {
    if (call.flows[i].kind == RowFlow::Kind::fixed) {
      fixed = true;
      continue;
    }
    if (call.flows[i].kind != RowFlow::Kind::rows) return kMixed;
    const auto at = row_axis(call.flows[i], call.inputs[i].shape, call.rows);
    if (!at) return kMixed;
    if (!all) {
      all = at;
    } else if (at->axis != all->axis || at->inner != all->inner) {
      return kMixed;
    } else if (at->axis == axis) {
      all->outer += at->outer;
    } else if (at->outer != all->outer) {
      return kMixed;
    }
  }
  if (fixed && all->axis == axis) return kMixed;
  return along_axis(*all, all->axis, call.outputs[0].shape);
}

}  // namespace

extern const OpDef op_concat{
    .name = "concat",
    .summary = "tensors behind each other along one axis",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows,
};

}  // namespace thimble
