// global_avg_pool_backward(dy [N,C]) -> dx [N,H,W,C]; attrs h, w.
#include "ops/shape/strided.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("global_avg_pool_backward", inputs);
  const Shape& dy = inputs[0].shape;
  user_check(dy.rank() == 2, "[global_avg_pool_backward] wants a gradient [N,C], got {}",
             to_string(dy));
  const int64_t h = attrs.integer("h"), w = attrs.integer("w");
  user_check(h >= 1 && w >= 1, "[global_avg_pool_backward] an image of {}x{} has no pixels", h, w);
  return {{{dy[0], h, w, dy[1]}, inputs[0].dtype}};
}

void reference(const KernelArgs& args) {
  const Shape& shape = args.outputs[0].type.shape;
  const int64_t pixels = shape[1] * shape[2], channels = shape[3];
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dy = args.inputs[0].as<T>();
    T* dx = args.outputs[0].as<T>();
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
          const auto value = widen(dy[n * channels + c]) / static_cast<Accumulator<T>>(pixels);
          store(dx, (n * pixels + p) * channels + c, value, args.adds_into(0));
        }
      }
    }
  });
}

std::vector<Sample> samples() {
  const Attrs square = {{"h", int64_t{8}}, {"w", int64_t{8}}};
  return {
      {.inputs = {{{2, 16}}}, .attrs = square},
      {.inputs = {{{3, 7}}}, .attrs = {{"h", int64_t{5}}, {"w", int64_t{2}}}},
      {.inputs = {{{2, 16}}}, .attrs = square, .accumulate = 1},
  };
}

}  // namespace

extern const OpDef op_global_avg_pool_backward{
    .name = "global_avg_pool_backward",
    .summary = "gradient of global_avg_pool",
    .infer = infer,
    .reference = reference,
    .work = flops_per_output<1>,
    .samples = samples,
    .accumulates = 1,
};

}  // namespace thimble
