// slice(x) -> y: the part [begin, end) of one axis, any dtype; attrs axis, begin, end.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/axis_part.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("slice", inputs, 1);
  const Shape& x = inputs[0].shape;
  const int axis = axis_of("slice", attrs, x);
  const int64_t begin = attrs.integer("begin"), end = attrs.integer("end");
  user_check(begin >= 0 && begin < end && end <= x[axis],
             "[slice] [{}, {}) is no part of axis {} of {}", begin, end, axis, to_string(x));
  return {{with_extent(x, axis, end - begin), inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const int64_t axis = g.attrs().integer("axis");
  const int64_t extent = g.build().shape(g.input(0))[static_cast<int>(axis)];
  const Attrs attrs = padding_attrs(axis, g.attrs().integer("begin"), extent);
  g.give(0, g.build().op("slice_backward", {g.upstream()}, attrs));
}

void reference(const KernelArgs& args) {
  const AxisPart rows =
      axis_part(args.inputs[0].type.shape, args.outputs[0].type.shape, *args.attrs);
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t o = 0; o < rows.outer; ++o) {
      const T* from = x + o * rows.whole + rows.begin;
      for (int64_t i = 0; i < rows.part; ++i) {
        move_element(y, o * rows.part + i, from[i], args.adds_into(0));
      }
    }
  });
}

// Reads its part alone, not the whole.
Work work(const Signature& s) {
  const double part = static_cast<double>(s.outputs[0].bytes().count);
  return {0, (s.accumulate != 0 ? 3 : 2) * part};
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{6, 5}}}, .attrs = slice_attrs(0, 2, 5), .differentiate = {0}},
      {.inputs = {{{2, 7, 3}}}, .attrs = slice_attrs(1, 0, 4), .differentiate = {0}},
      {.inputs = {{{2, 3, 8}}}, .attrs = slice_attrs(2, 7, 8), .differentiate = {0}},
      {.inputs = {{{4, 9}, DType::i32}},
       .attrs = slice_attrs(1, 3, 4),
       .fills = {{Fill::Kind::labels, 0, 1000}}},
      {.inputs = {{{2, 7, 3}}}, .attrs = slice_attrs(1, 2, 7), .accumulate = 1},
  };
}

// Of the axis that rows lie along, only whole batches can be taken.
RowFlow rows(const RowCall& call, size_t) {
  if (call.flows[0].kind != RowFlow::Kind::rows) return call.flows[0];
  std::optional<RowAxis> at = row_axis(call.flows[0], call.inputs[0].shape, call.rows);
  if (!at) return kMixed;
  if (at->axis == call.attrs.integer("axis")) {
    const int64_t batch = call.rows * at->inner;
    const int64_t begin = call.attrs.integer("begin"), end = call.attrs.integer("end");
    if (begin % batch != 0 || end % batch != 0) return kMixed;
    at->outer = (end - begin) / batch;
  }
  return along_axis(*at, at->axis, call.outputs[0].shape);
}

}  // namespace

extern const OpDef op_slice{
    .name = "slice",
    .summary = "a part of one axis",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
    .slices = true,
    .accumulates = 1,
};

}  // namespace thimble
