// take_along(x [R,C], places i32 [R,M]) -> [R,M]: element places[r,m] of row r of x, any dtype;
// zero where there is none. An element may be taken more than once.
#include <algorithm>
#include <array>

#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/along.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("take_along", inputs, 2);
  check_rows("take_along", "x [R,C]", inputs[0]);
  check_places("take_along", inputs[1], inputs[0].shape[0]);
  return {{inputs[1].shape, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Attrs attrs = {{"width", g.build().shape(g.input(0))[1]}};
  g.give(0, g.build().op("add_along", {g.upstream(), g.input(1)}, attrs));
}

void reference(const KernelArgs& args) {
  const int64_t width = args.inputs[0].type.shape[1], count = args.inputs[1].type.shape[1];
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    std::fill_n(y, args.outputs[0].elements(), T{});
    for_each_place(args.inputs[1], width, [&](int64_t row, int64_t m, int64_t place) {
      y[row * count + m] = x[row * width + place];
    });
  });
}

// Reads as much of x as it takes.
Work work(const Signature& s) {
  return {0, static_cast<double>(s.inputs[1].bytes().count + 2 * s.outputs[0].bytes().count)};
}

std::vector<Sample> samples() {
  const auto sample = [](int64_t rows, int64_t width, int64_t count) {
    return Sample{.inputs = {{{rows, width}}, {{rows, count}, DType::i32}},
                  .fills = {{}, place_fill(width)},
                  .differentiate = {0}};
  };
  Sample whole = sample(3, 8, 5);
  whole.inputs[0].dtype = DType::i32;
  whole.fills[0] = {Fill::Kind::labels, 0, 100};
  whole.differentiate = {};
  return {sample(3, 7, 4), sample(1, 5, 64), sample(33, 9, 1), whole};
}

RowFlow rows(const RowCall& call, size_t output) {
  constexpr std::array<int, 3> kAxes = {1, 1, 1};
  return rows_of_joint_slices(call, output, std::span(kAxes).first(call.inputs.size()));
}

}  // namespace

extern const OpDef op_take_along{
    .name = "take_along",
    .summary = "elements of each row by their places",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows,
};

}  // namespace thimble
