// layer_norm(x [...,C], gamma [C], beta [C]) -> (y like x, mean [rows], rstd [rows]); attr epsilon
// (1e-5). Each row of the last axis gets mean 0 and variance 1, then scale and shift per channel.
// mean and rstd (inverse deviation) are saved for the gradient, in the statistics dtype.
#include "graph/builder.h"
#include "ops/normalise/group_statistics.h"
#include "ops/reduce/last_axis.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("layer_norm", inputs, 3);
  check_rows("layer_norm", inputs[0]);
  check_scales("layer_norm", "gamma", inputs[1], inputs[0]);
  check_scales("layer_norm", "beta", inputs[2], inputs[0]);
  const TensorType per_row = {{rows_of(inputs[0].shape).count}, statistics_dtype(inputs[0].dtype)};
  return {inputs[0], per_row, per_row};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  g.give_each(g.build().apply("layer_norm_backward",
                              {g.input(0), g.output(1), g.output(2), g.input(1), g.upstream()}));
}

void reference(const KernelArgs& args) {
  run_group_norm(args, group_per_row(args.inputs[0].type.shape));
}

// y alone: the saved extras have no gradient.
ValueId normalized(Builder& build, std::span<const ValueId> in) {
  return build.op("layer_norm", {in.begin(), in.end()});
}

std::vector<Sample> samples() {
  std::vector<Sample> result = {
      {.inputs = {{{5, 7}}, {{7}}, {{7}}}, .differentiate = {0, 1, 2}},
      {.inputs = {{{2, 3, 32}}, {{32}}, {{32}}},
       .attrs = {{"epsilon", 1e-3}},
       .differentiate = {0, 1, 2}},
      {.inputs = {{{33}}, {{33}}, {{33}}}, .differentiate = {0, 1, 2}},
  };
  for (Sample& sample : result) sample.build = normalized;
  return result;
}

}  // namespace

extern const OpDef op_layer_norm{
    .name = "layer_norm",
    .summary = "normalises each row of the last axis, scales and shifts",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<8>,
    .samples = samples,
    .rows = rows_by_slice<1>,
    .in_place = {{0, 0}},
};

}  // namespace thimble
