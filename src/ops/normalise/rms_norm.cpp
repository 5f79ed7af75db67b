// rms_norm(x [...,C], gamma [C]) -> (y like x, rstd [rows]); attr epsilon (1e-5). Each row of the
// last axis is divided by its root mean square and scaled per channel. rstd, one over the root, is
// saved for the gradient, in the statistics dtype.
#include <cmath>

#include "graph/builder.h"
#include "ops/reduce/last_axis.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("rms_norm", inputs, 2);
  check_rows("rms_norm", inputs[0]);
  check_scales("rms_norm", "gamma", inputs[1], inputs[0]);
  return {inputs[0], {{rows_of(inputs[0].shape).count}, statistics_dtype(inputs[0].dtype)}};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  g.give_each(
      g.build().apply("rms_norm_backward", {g.input(0), g.output(1), g.input(1), g.upstream()}));
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const double epsilon = args.attrs->real("epsilon", 1e-5);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = args.inputs[0].as<T>() + r * rows.columns;
      double squares = 0;
      for (int64_t c = 0; c < rows.columns; ++c) {
        squares += static_cast<double>(x[c]) * static_cast<double>(x[c]);
      }
      const Real rstd =
          static_cast<Real>(1 / std::sqrt(squares / static_cast<double>(rows.columns) + epsilon));
      args.outputs[1].as<Real>()[r] = rstd;
      for (int64_t c = 0; c < rows.columns; ++c) {
        store(args.outputs[0].as<T>(), r * rows.columns + c,
              widen(x[c]) * rstd * args.inputs[1].as<Real>()[c]);
      }
    }
  });
}

// y alone: the saved extra has no gradient.
ValueId normalized(Builder& build, std::span<const ValueId> in) {
  return build.op("rms_norm", {in.begin(), in.end()});
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const Shape& x : {Shape{5, 7}, Shape{2, 3, 32}, Shape{33}}) {
    result.push_back({.inputs = {{x}, {{x.back()}}}, .differentiate = {0, 1}, .build = normalized});
  }
  return result;
}

}  // namespace

extern const OpDef op_rms_norm{
    .name = "rms_norm",
    .summary = "divides each row of the last axis by its root mean square and scales",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<5>,
    .samples = samples,
    .rows = rows_by_slice<1>,
    .in_place = {{0, 0}},
};

}  // namespace thimble
