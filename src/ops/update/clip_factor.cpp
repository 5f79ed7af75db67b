// clip_factor(squares f32 [1][, unscaling f32 [1]]) -> f32 [1]
//   = u min(1, max_norm / (u sqrt(squares) + 1e-6)), u = unscaling (1); attr max_norm.
// The factor of gradients with that sum of squares, so that their norm, times u, is at most
// max_norm. As PyTorch's clip_grad_norm_, after gradients are unscaled. 0 where u is 0.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(inputs.size() == 1 || inputs.size() == 2, "[clip_factor] takes 1 or 2 inputs, got {}",
             inputs.size());
  for (const TensorType& input : inputs) {
    check_type("clip_factor", "a scalar", input, {{1}, DType::f32});
  }
  user_check(attrs.real("max_norm") > 0, "[clip_factor] max_norm is above zero, got {}",
             attrs.real("max_norm"));
  return {inputs[0]};
}

// A norm that is not finite gives no number at all: a diverged run must not look healthy.
void reference(const KernelArgs& args) {
  const double unscaling =
      args.inputs.size() > 1 ? static_cast<double>(*args.inputs[1].as<float>()) : 1;
  const double norm = unscaling * std::sqrt(static_cast<double>(*args.inputs[0].as<float>()));
  double factor = std::min(1.0, args.attrs->real("max_norm") / (norm + 1e-6));
  if (!std::isfinite(norm)) factor = std::numeric_limits<double>::quiet_NaN();
  *args.outputs[0].as<float>() = static_cast<float>(unscaling == 0 ? 0 : unscaling * factor);
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const double squares : {0.0, 0.5, 400.0}) {
    result.push_back({.inputs = {{{1}}},
                      .attrs = {{"max_norm", 1.5}},
                      .fills = {{Fill::Kind::uniform, squares, squares}}});
    result.push_back(result.back());
    result.back().inputs.push_back({{1}});
    result.back().fills.push_back({Fill::Kind::uniform, 0.01, 0.1});
  }
  return result;
}

}  // namespace

extern const OpDef op_clip_factor{
    .name = "clip_factor",
    .summary = "what brings a norm down to a given one",
    .infer = infer,
    .reference = reference,
    .samples = samples,
};

}  // namespace thimble
