// slice_backward(dy) -> dx: dy at [begin, begin + its extent) of an axis of `extent`, zeros
// elsewhere; attrs axis, begin, extent. Added into, it touches the part only.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/axis_part.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("slice_backward", inputs);
  const Shape& dy = inputs[0].shape;
  const int axis = axis_of("slice_backward", attrs, dy);
  const int64_t begin = attrs.integer("begin"), extent = attrs.integer("extent");
  user_check(begin >= 0 && begin + dy[axis] <= extent,
             "[slice_backward] {} at {} does not go into an axis of {}", to_string(dy), begin,
             extent);
  return {{with_extent(dy, axis, extent), inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const int64_t axis = g.attrs().integer("axis"), begin = g.attrs().integer("begin");
  const int64_t end = begin + g.build().shape(g.input(0))[static_cast<int>(axis)];
  g.give(0, g.build().op("slice", {g.upstream()}, slice_attrs(axis, begin, end)));
}

void reference(const KernelArgs& args) {
  const AxisPart rows =
      axis_part(args.outputs[0].type.shape, args.inputs[0].type.shape, *args.attrs);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dy = args.inputs[0].as<T>();
    T* dx = args.outputs[0].as<T>();
    if (!args.adds_into(0)) {
      for (int64_t i = 0; i < rows.outer * rows.whole; ++i) dx[i] = T{};
    }
    for (int64_t o = 0; o < rows.outer; ++o) {
      T* to = dx + o * rows.whole + rows.begin;
      for (int64_t i = 0; i < rows.part; ++i) {
        move_element(to, i, dy[o * rows.part + i], args.adds_into(0));
      }
    }
  });
}

// Adding reads and writes the part, not the whole.
Work work(const Signature& s) {
  const double part = static_cast<double>(s.inputs[0].bytes().count);
  const double whole = static_cast<double>(s.outputs[0].bytes().count);
  return s.accumulate != 0 ? Work{count_of(s.inputs[0]), 3 * part} : Work{0, part + whole};
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{3, 5}}}, .attrs = padding_attrs(0, 2, 6), .differentiate = {0}},
      {.inputs = {{{2, 4, 3}}}, .attrs = padding_attrs(1, 0, 7), .differentiate = {0}},
      {.inputs = {{{2, 3, 1}}}, .attrs = padding_attrs(2, 7, 8)},
      {.inputs = {{{2, 4, 3}}}, .attrs = padding_attrs(1, 3, 7), .accumulate = 1},
  };
}

// Along the axis of the rows, only whole batches of zeros can be put around.
RowFlow rows(const RowCall& call, size_t) {
  if (call.flows[0].kind != RowFlow::Kind::rows) return call.flows[0];
  std::optional<RowAxis> at = row_axis(call.flows[0], call.inputs[0].shape, call.rows);
  if (!at) return kMixed;
  if (at->axis == call.attrs.integer("axis")) {
    const int64_t batch = call.rows * at->inner, extent = call.attrs.integer("extent");
    if (call.attrs.integer("begin") % batch != 0 || extent % batch != 0) return kMixed;
    at->outer = extent / batch;
  }
  return along_axis(*at, at->axis, call.outputs[0].shape);
}

}  // namespace

extern const OpDef op_slice_backward{
    .name = "slice_backward",
    .summary = "a part of an axis, zeros around it: slice's gradient, and padding",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
