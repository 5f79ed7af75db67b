// softmax(x [...,C]) -> y like x: each row of the last axis becomes positive and sums to 1. Attr
// log (default 0); 1: the logarithms of that.
#include <algorithm>
#include <cmath>

#include "graph/builder.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("softmax", inputs, 1);
  check_rows("softmax", inputs[0]);
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0))
    g.give(0, g.build().op("softmax_backward", {g.output(), g.upstream()}, g.attrs()));
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const bool log = args.attrs->integer("log", 0) != 0;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = args.inputs[0].as<T>() + r * rows.columns;
      T* y = args.outputs[0].as<T>() + r * rows.columns;
      Real largest = widen(x[0]);
      for (int64_t c = 1; c < rows.columns; ++c) largest = std::max(largest, widen(x[c]));
      double sum = 0;
      for (int64_t c = 0; c < rows.columns; ++c) {
        sum += static_cast<double>(std::exp(widen(x[c]) - largest));
      }
      const Real share = static_cast<Real>(1 / sum), shift = static_cast<Real>(std::log(sum));
      for (int64_t c = 0; c < rows.columns; ++c) {
        const Real centred = widen(x[c]) - largest;
        store(y, c, log ? centred - shift : std::exp(centred) * share);
      }
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}}}, .differentiate = {0}},
      {.inputs = {{{2, 3, 4, 33}}}, .differentiate = {0}},
      {.inputs = {{{6, 16}}}, .fills = {{Fill::Kind::uniform, -30, 30}}, .differentiate = {0}},
      {.inputs = {{{3, 1}}}, .differentiate = {0}},
      {.inputs = {{{5, 33}}}, .attrs = {{"log", int64_t{1}}}, .differentiate = {0}},
  };
}

}  // namespace

extern const OpDef op_softmax{
    .name = "softmax",
    .summary = "softmax over the last axis, or its logarithm",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<5>,
    .samples = samples,
    .rows = rows_by_slice<1>,
    .in_place = {{0, 0}},
};

}  // namespace thimble
