// add_along(x [R,M], places i32 [R,M]) -> [R,C]; attr width (C): element places[r,m] of row r is
// the sum of the x[r,m] that name it, in their order, from zero.
#include <algorithm>
#include <array>

#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/samples.h"
#include "ops/shape/along.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("add_along", inputs, 2);
  check_floating_rank("add_along", "x [R,M]", inputs[0], 2);
  check_places("add_along", inputs[1], inputs[0].shape[0]);
  check_type("add_along", "x", inputs[0], {inputs[1].shape, inputs[0].dtype});
  const int64_t width = attrs.integer("width");
  user_check(width >= 1, "[add_along] wants a width of 1 at least, got {}", width);
  return {{{inputs[0].shape[0], width}, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, g.build().op("take_along", {g.upstream(), g.input(1)}));
}

// Of one row: its sums, each rounded once.
Bytes reference_workspace(const Signature& s) {
  return TensorType{{s.outputs[0].shape[1]}, statistics_dtype(s.outputs[0].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const int64_t rows = args.outputs[0].type.shape[0], width = args.outputs[0].type.shape[1];
  const int64_t count = args.inputs[1].type.shape[1];
  const int32_t* places = args.inputs[1].as<int32_t>();
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    auto* const sums = reinterpret_cast<Accumulator<T>*>(args.workspace);
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(sums, width, Accumulator<T>{});
      for (int64_t at = row * count; at < (row + 1) * count; ++at) {
        if (places[at] >= 0 && places[at] < width) sums[places[at]] += widen(x[at]);
      }
      for (int64_t c = 0; c < width; ++c) {
        store(args.outputs[0].as<T>(), row * width + c, sums[c], args.adds_into(0));
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](int64_t rows, int64_t count, int64_t width) {
    return Sample{.inputs = {{{rows, count}}, {{rows, count}, DType::i32}},
                  .attrs = {{"width", width}},
                  .fills = {{}, place_fill(width)},
                  .differentiate = {0}};
  };
  return and_added({sample(3, 4, 7), sample(1, 64, 5), sample(33, 1, 9)});
}

RowFlow rows(const RowCall& call, size_t output) {
  constexpr std::array<int, 3> kAxes = {1, 1, 1};
  return rows_of_joint_slices(call, output, std::span(kAxes).first(call.inputs.size()));
}

}  // namespace

extern const OpDef op_add_along{
    .name = "add_along",
    .summary = "sums of the elements that name a place of their row",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .samples = samples,
    .rows = rows,
    .accumulates = 1,
};

}  // namespace thimble
