// map_backward(x, dy) -> dx = dy * f'(x); attrs of map.
#include "ops/pointwise/gate.h"
#include "ops/pointwise/map_functions.h"

namespace thimble {

std::vector<Sample> map_samples(bool backward);

namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(with_map(attrs, [](auto) {}), "[map_backward] knows no function '{}'",
             attrs.text("of", ""));
  return infer_unary_backward("map_backward", inputs);
}

void reference(const KernelArgs& args) {
  with_map(*args.attrs, [&](auto f) {
    run_unary_backward(args, [f](auto x, auto dy) { return dy * f.slope(x); });
  });
}

}  // namespace

extern const OpDef op_map_backward{
    .name = "map_backward",
    .summary = "gradient of map, from its argument",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<10>,
    .samples = [] { return map_samples(true); },
    .in_place = {{0, 1}, {0, 0}},
    .reading = reads<Reading::curved, 0>,
    .accumulates = 1,
};

}  // namespace thimble
