// group_norm_backward(x [N,H,W,C], mean [N,groups], rstd [N,groups], gamma [C], beta [C], dy)
// -> (dx, dgamma, dbeta); attrs of group_norm.
#include "ops/normalise/group_norm_geometry.h"
#include "ops/samples.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("group_norm_backward", inputs, 6);
  const GroupGeometry g = group_geometry("group_norm_backward", inputs[0], attrs);
  const TensorType per_group = group_statistics_type(g, inputs[0].dtype);
  check_type("group_norm_backward", "mean", inputs[1], per_group);
  check_type("group_norm_backward", "rstd", inputs[2], per_group);
  check_scales("group_norm_backward", "gamma", inputs[3], inputs[0]);
  check_scales("group_norm_backward", "beta", inputs[4], inputs[0]);
  check_type("group_norm_backward", "gradient", inputs[5], inputs[0]);
  return {inputs[0], inputs[3], inputs[4]};
}

void reference(const KernelArgs& args) {
  run_group_norm_backward(args,
                          group_geometry("group_norm_backward", args.inputs[0].type, *args.attrs));
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const GroupNormCase& c : group_norm_cases()) {
    const Shape channels = {c.x.back()}, per_group = {c.x[0], c.groups};
    result.push_back({.inputs = {{c.x}, {per_group}, {per_group}, {channels}, {channels}, {c.x}},
                      .attrs = c.attrs(),
                      .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}}});
  }
  return and_added(std::move(result), 7);
}

}  // namespace

extern const OpDef op_group_norm_backward{
    .name = "group_norm_backward",
    .summary = "gradient of group_norm",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<16>,
    .samples = samples,
    .in_place = {{0, 5}},
    .reading = norm_reading,
    .masks_input =
        [](const Attrs& attrs) { return fuses_relu("group_norm_backward", attrs) ? 5 : -1; },
    .accumulates = 7,
};

}  // namespace thimble
