// put_along(base [R,C], places i32 [R,M], x [R,M]) -> y like base, any dtype: the base with x[r,m]
// at place places[r,m] of row r. Of several that name a place the last counts; as in PyTorch, each
// of them has the gradient of that place.
#include <algorithm>
#include <array>

#include "ops/pointwise/zeros_like.h"
#include "ops/row_rules.h"
#include "ops/shape/along.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("put_along", inputs, 3);
  check_rows("put_along", "base [R,C]", inputs[0]);
  check_places("put_along", inputs[1], inputs[0].shape[0]);
  check_type("put_along", "x", inputs[2], {inputs[1].shape, inputs[0].dtype});
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  Builder& b = g.build();
  const ValueId places = g.input(1);
  if (g.wants(0)) {
    g.give(0, b.op("put_along", {g.upstream(), places, zeros_like(b, g.input(2))}));
  }
  if (g.wants(2)) g.give(2, b.op("take_along", {g.upstream(), places}));
}

void reference(const KernelArgs& args) {
  const int64_t width = args.inputs[0].type.shape[1], count = args.inputs[1].type.shape[1];
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T *base = args.inputs[0].as<T>(), *x = args.inputs[2].as<T>();
    T* y = args.outputs[0].as<T>();
    if (y != base) std::copy_n(base, args.outputs[0].elements(), y);
    for_each_place(args.inputs[1], width, [&](int64_t row, int64_t m, int64_t place) {
      y[row * width + place] = x[row * count + m];
    });
  });
}

// With places that may be alike, the gradient is PyTorch's and not that of the function: so the
// samples that are differentiated have one place a row.
std::vector<Sample> samples() {
  const auto sample = [](int64_t rows, int64_t width, int64_t count) {
    Sample made = {.inputs = {{{rows, width}}, {{rows, count}, DType::i32}, {{rows, count}}},
                   .fills = {{}, place_fill(width)}};
    if (count == 1) made.differentiate = {0, 2};
    return made;
  };
  Sample whole = sample(3, 8, 5);
  whole.inputs[0].dtype = whole.inputs[2].dtype = DType::i32;
  whole.fills = {{Fill::Kind::labels, 0, 100}, place_fill(8), {Fill::Kind::labels, 0, 100}};
  return {sample(33, 9, 1), sample(3, 7, 4), sample(2, 5, 64), whole};
}

RowFlow rows(const RowCall& call, size_t output) {
  constexpr std::array<int, 3> kAxes = {1, 1, 1};
  return rows_of_joint_slices(call, output, std::span(kAxes).first(call.inputs.size()));
}

}  // namespace

extern const OpDef op_put_along{
    .name = "put_along",
    .summary = "each row with other elements at some places",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows,
    .in_place = {{0, 0}},
};

}  // namespace thimble
