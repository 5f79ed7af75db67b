// clip_factor(squares f32 [1]) -> f32 [1] = min(1, max_norm / (sqrt(squares) + 1e-6)); attr
// max_norm. What gradients with that sum of squares are multiplied with to have a norm of max_norm
// at most. As PyTorch's clip_grad_norm_.
#include <cmath>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("clip_factor", inputs, 1);
  check_type("clip_factor", "sum of squares", inputs[0], {{1}, DType::f32});
  user_check(attrs.real("max_norm") > 0, "[clip_factor] max_norm is above zero, got {}",
             attrs.real("max_norm"));
  return {inputs[0]};
}

// Written so that a NaN stays one: a diverged run must not look healthy.
void reference(const KernelArgs& args) {
  const double norm = std::sqrt(static_cast<double>(*args.inputs[0].as<float>()));
  const double factor = args.attrs->real("max_norm") / (norm + 1e-6);
  *args.outputs[0].as<float>() = static_cast<float>(factor > 1 ? 1 : factor);
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const double squares : {0.0, 0.5, 400.0}) {
    result.push_back({.inputs = {{{1}}},
                      .attrs = {{"max_norm", 1.5}},
                      .fills = {{Fill::Kind::uniform, squares, squares}}});
  }
  return result;
}

}  // namespace

extern const OpDef op_clip_factor;
const OpDef op_clip_factor{
    .name = "clip_factor",
    .summary = "what brings a norm down to a given one",
    .infer = infer,
    .reference = reference,
    .samples = samples,
};

}  // namespace thimble
