// group_norm(x [N,H,W,C], gamma [C], beta [C]) -> (y like x, mean [N,groups], rstd [N,groups]);
// attrs groups, epsilon (1e-5), act (none or relu). Each sample's channel groups get mean 0 and
// variance 1, then scale and shift per channel. mean and rstd (inverse deviation) are saved for the
// gradient, in the statistics dtype.
#include "graph/builder.h"
#include "ops/normalise/group_norm_geometry.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("group_norm", inputs, 3);
  const GroupGeometry g = group_geometry("group_norm", inputs[0], attrs);
  check_scales("group_norm", "gamma", inputs[1], inputs[0]);
  check_scales("group_norm", "beta", inputs[2], inputs[0]);
  const TensorType per_group = group_statistics_type(g, inputs[0].dtype);
  return {inputs[0], per_group, per_group};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  g.give_each(g.build().apply(
      "group_norm_backward",
      {g.input(0), g.output(1), g.output(2), g.input(1), g.input(2), g.upstream()}, g.attrs()));
}

void reference(const KernelArgs& args) {
  run_group_norm(args, group_geometry("group_norm", args.inputs[0].type, *args.attrs));
}

// y alone: the saved extras have no gradient.
template <size_t kCase>
ValueId normalized(Builder& build, std::span<const ValueId> in) {
  return build.op("group_norm", {in.begin(), in.end()}, group_norm_cases()[kCase].attrs());
}

std::vector<Sample> samples() {
  constexpr std::array builds = {normalized<0>, normalized<1>, normalized<2>, normalized<3>};
  std::vector<Sample> result;
  for (size_t i = 0; i < builds.size(); ++i) {
    const GroupNormCase c = group_norm_cases()[i];
    const Shape channels = {c.x.back()};
    result.push_back({.inputs = {{c.x}, {channels}, {channels}},
                      .attrs = c.attrs(),
                      .differentiate = {0, 1, 2},
                      .build = builds[i]});
  }
  return result;
}

}  // namespace

extern const OpDef op_group_norm{
    .name = "group_norm",
    .summary = "normalises channel groups of each sample, scales, shifts, and may apply relu",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<8>,
    .samples = samples,
    .rows = rows_by_slice<3>,
    .in_place = {{0, 0}},
    .nonnegative = [](const Attrs& attrs) { return fuses_relu("group_norm", attrs); },
    .normalizes = true,
};

}  // namespace thimble
