// gradient_factor(loss_scale f32 [1], overflow f32 [1]) -> f32 [1]: what updates multiply gradients
// of the scaled loss by: 1 / loss_scale, or 0 (nothing changes) where something overflowed.
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  const TensorType scalar = {{1}, DType::f32};
  check_inputs("gradient_factor", inputs, 2);
  check_type("gradient_factor", "loss scale", inputs[0], scalar);
  check_type("gradient_factor", "overflow", inputs[1], scalar);
  return {scalar};
}

void reference(const KernelArgs& args) {
  const bool overflow = *args.inputs[1].as<float>() > 0;
  *args.outputs[0].as<float>() = overflow ? 0.0f : 1 / *args.inputs[0].as<float>();
}

std::vector<Sample> samples() {
  const Fill scale = {Fill::Kind::uniform, 1, 200};
  return {{.inputs = {{{1}}, {{1}}}, .fills = {scale, {Fill::Kind::zeros}}},
          {.inputs = {{{1}}, {{1}}}, .fills = {scale, {Fill::Kind::ones}}}};
}

}  // namespace

extern const OpDef op_gradient_factor{
    .name = "gradient_factor",
    .summary = "one over the loss scale, or 0 where gradients overflowed",
    .infer = infer,
    .reference = reference,
    .samples = samples,
};

}  // namespace thimble
