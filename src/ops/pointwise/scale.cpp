// scale(x) -> y = factor * x; attr factor.
#include "ops/pointwise/unary.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  return infer_unary("scale", inputs);
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, g.build().op("scale", {g.upstream()}, g.attrs()));
}

void reference(const KernelArgs& args) {
  const double factor = args.attrs->real("factor");
  run_unary(args, [factor](auto x) { return static_cast<decltype(x)>(factor) * x; });
}

std::vector<Sample> samples() { return and_added(unary_samples({{"factor", -0.75}})); }

}  // namespace

extern const OpDef op_scale{
    .name = "scale",
    .summary = "product with a number",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_output<1>,
    .samples = samples,
    .rows = rows_of_linear,
    .in_place = {{0, 0}},
    .is_identity = [](const Attrs& attrs) { return attrs.real("factor") == 1; },
    .accumulates = 1,
};

}  // namespace thimble
