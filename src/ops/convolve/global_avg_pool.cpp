// global_avg_pool(x [N,H,W,C]) -> y [N,C]: the mean over the image.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_one_floating("global_avg_pool", inputs);
  const Shape& x = inputs[0].shape;
  user_check(x.rank() == 4 && x[1] * x[2] > 0,
             "[global_avg_pool] wants images [N,H,W,C] with pixels, got {}", to_string(x));
  return {{{x[0], x[3]}, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Shape x = g.build().shape(g.input(0));
  g.give(0, g.build().op("global_avg_pool_backward", {g.upstream()}, {{"h", x[1]}, {"w", x[2]}}));
}

void reference(const KernelArgs& args) {
  const Shape& shape = args.inputs[0].type.shape;
  const int64_t pixels = shape[1] * shape[2], channels = shape[3];
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        Accumulator<T> sum = 0;
        for (int64_t p = 0; p < pixels; ++p) sum += widen(x[(n * pixels + p) * channels + c]);
        store(y, n * channels + c, sum / static_cast<Accumulator<T>>(pixels));
      }
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{2, 8, 8, 16}}}, .differentiate = {0}},
      {.inputs = {{{3, 5, 2, 7}}}, .differentiate = {0}},
  };
}

}  // namespace

extern const OpDef op_global_avg_pool{
    .name = "global_avg_pool",
    .summary = "mean over each image, per channel",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<1>,
    .samples = samples,
    .rows = rows_by_slice<3>,
};

}  // namespace thimble
