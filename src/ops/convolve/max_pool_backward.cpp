// max_pool_backward(index u8, dy [N,H',W',C]) -> dx [N,H,W,C].
// attrs: max_pool's, and in_h, in_w, which dy alone does not tell.
#include "ops/convolve/pool_geometry.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("max_pool_backward", inputs, 2);
  check_floating("max_pool_backward", inputs[1]);
  user_check(inputs[0] == TensorType{inputs[1].shape, DType::u8},
             "[max_pool_backward] wants an index u8{}, got {}", to_string(inputs[1].shape),
             to_string(inputs[0]));
  return {
      {pool_backward_geometry("max_pool_backward", inputs[1].shape, attrs).x(), inputs[1].dtype}};
}

// Gathers over the windows of each input element, so that nothing is summed in a stored dtype.
void reference(const KernelArgs& args) {
  const PoolGeometry g =
      pool_backward_geometry("max_pool_backward", args.inputs[1].type.shape, *args.attrs);
  with_float_type(args.inputs[1].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const uint8_t* index = args.inputs[0].as<uint8_t>();
    const T* dy = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    for_each_pixel(g.x(), [&](int64_t n, int64_t ih, int64_t iw, int64_t c) {
      Accumulator<T> sum = 0;
      for_each_window(g, ih, iw, [&](int64_t oh, int64_t ow, int64_t position) {
        const int64_t at = g.y_at(n, oh, ow, c);
        if (index[at] == position) sum += widen(dy[at]);
      });
      store(dx, g.x_at(n, ih, iw, c), sum, args.adds_into(0));
    });
  });
}

Work work(const Signature& s) {
  return {pool_backward_geometry("max_pool_backward", s.inputs[1].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const PoolCase& c : pool_cases()) {
    const Shape dy = pool_geometry("max_pool", c.x, c.attrs()).y();
    const double places = static_cast<double>(c.kernel * c.kernel);
    result.push_back({.inputs = {{dy, DType::u8}, {dy}},
                      .attrs = pool_backward_attrs(c.x, c.attrs()),
                      .fills = {{Fill::Kind::labels, 0, places}}});
  }
  result.push_back(result.front());
  result.back().accumulate = 1;
  return result;
}

}  // namespace

extern const OpDef op_max_pool_backward;
const OpDef op_max_pool_backward{
    .name = "max_pool_backward",
    .summary = "gradient of max_pool",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::cheap,
    .accumulates = 1,
};

}  // namespace thimble
