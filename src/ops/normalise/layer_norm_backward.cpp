// layer_norm_backward(x [...,C], mean [rows], rstd [rows], gamma [C], dy) -> (dx, dgamma, dbeta).
#include "ops/normalise/group_statistics.h"
#include "ops/reduce/last_axis.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("layer_norm_backward", inputs, 5);
  check_rows("layer_norm_backward", inputs[0]);
  const TensorType per_row = {{rows_of(inputs[0].shape).count}, statistics_dtype(inputs[0].dtype)};
  check_type("layer_norm_backward", "mean", inputs[1], per_row);
  check_type("layer_norm_backward", "rstd", inputs[2], per_row);
  check_scales("layer_norm_backward", "gamma", inputs[3], inputs[0]);
  check_type("layer_norm_backward", "gradient", inputs[4], inputs[0]);
  return {inputs[0], inputs[3], inputs[3]};
}

void reference(const KernelArgs& args) {
  run_group_norm_backward(args, group_per_row(args.inputs[0].type.shape));
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, uint32_t accumulate) {
    const Shape rows = {rows_of(x).count}, channels = {x.back()};
    return Sample{.inputs = {{x}, {rows}, {rows}, {channels}, {x}},
                  .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}},
                  .accumulate = accumulate};
  };
  return {sample({5, 7}, 0), sample({2, 3, 32}, 0), sample({33}, 0), sample({5, 7}, 6),
          sample({6, 16}, 7)};
}

}  // namespace

extern const OpDef op_layer_norm_backward{
    .name = "layer_norm_backward",
    .summary = "gradient of layer_norm",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<14>,
    .samples = samples,
    .in_place = {{0, 4}},
    .reading = norm_reading,
    .accumulates = 7,
};

}  // namespace thimble
