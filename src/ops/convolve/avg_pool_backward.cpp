// avg_pool_backward(dy [N,H',W',C]) -> dx [N,H,W,C].
// attrs: avg_pool's, and in_h, in_w, which dy alone does not tell.
#include "ops/convolve/pool_geometry.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("avg_pool_backward", inputs, 1);
  check_floating("avg_pool_backward", inputs[0]);
  return {
      {pool_backward_geometry("avg_pool_backward", inputs[0].shape, attrs).x(), inputs[0].dtype}};
}

// Gathers over the windows of each input element, so that nothing is summed in a stored dtype.
void reference(const KernelArgs& args) {
  const PoolGeometry g =
      pool_backward_geometry("avg_pool_backward", args.inputs[0].type.shape, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* dy = args.inputs[0].as<T>();
    T* dx = args.outputs[0].as<T>();
    const auto share = 1 / static_cast<Accumulator<T>>(g.kernel * g.kernel);
    for_each_pixel(g.x(), [&](int64_t n, int64_t ih, int64_t iw, int64_t c) {
      Accumulator<T> sum = 0;
      for_each_window(g, ih, iw, [&](int64_t oh, int64_t ow, int64_t) {
        sum += widen(dy[g.y_at(n, oh, ow, c)]);
      });
      store(dx, g.x_at(n, ih, iw, c), sum * share, args.adds_into(0));
    });
  });
}

Work work(const Signature& s) {
  return {pool_backward_geometry("avg_pool_backward", s.inputs[0].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const PoolCase& c : pool_cases()) {
    const Shape dy = pool_geometry("avg_pool", c.x, c.attrs()).y();
    result.push_back({.inputs = {{dy}}, .attrs = pool_backward_attrs(c.x, c.attrs())});
  }
  result.push_back(result.front());
  result.back().accumulate = 1;
  return result;
}

}  // namespace

extern const OpDef op_avg_pool_backward;
const OpDef op_avg_pool_backward{
    .name = "avg_pool_backward",
    .summary = "gradient of avg_pool",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::cheap,
    .accumulates = 1,
};

}  // namespace thimble
