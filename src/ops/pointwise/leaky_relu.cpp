// leaky_relu(x) -> y = x < 0 ? slope * x : x; attr slope (default 0.01).
#include "ops/pointwise/unary.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(attrs.real("slope", 0.01) >= 0, "[leaky_relu] the slope must not be negative, got {}",
             attrs.real("slope", 0.01));
  return infer_unary("leaky_relu", inputs);
}

void gradient(GradientBuilder& g) { give_unary_gradient(g, "leaky_relu_backward"); }

void reference(const KernelArgs& args) {
  const double slope = args.attrs->real("slope", 0.01);
  run_unary(args, [slope](auto x) { return x < 0 ? static_cast<decltype(x)>(slope) * x : x; });
}

std::vector<Sample> samples() { return unary_samples({{"slope", 0.1}}); }

}  // namespace

extern const OpDef op_leaky_relu{
    .name = "leaky_relu",
    .summary = "rectifier that lets negative values leak",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_output<1>,
    .samples = samples,
    .rows = rows_by_element,
    .in_place = {{0, 0}},
};

}  // namespace thimble
