// avg_pool(x [N,H,W,C]) -> y [N,H',W',C]; attrs kernel, stride, pad.
// Padding counts as zeros: every window divides by kernel * kernel.
#include "graph/builder.h"
#include "ops/convolve/pool_geometry.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("avg_pool", inputs);
  return {{pool_geometry("avg_pool", inputs[0].shape, attrs).y(), inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Attrs attrs = pool_backward_attrs(g.build().shape(g.input(0)), g.attrs());
  g.give(0, g.build().op("avg_pool_backward", {g.upstream()}, attrs));
}

void reference(const KernelArgs& args) {
  const PoolGeometry g = pool_geometry("avg_pool", args.inputs[0].type.shape, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    const auto share = 1 / static_cast<Accumulator<T>>(g.window());
    for_each_pixel(g.y(), [&](int64_t n, int64_t oh, int64_t ow, int64_t c) {
      Accumulator<T> sum = 0;
      g.for_each_seen(oh, ow, [&](int64_t ih, int64_t iw, int64_t, int64_t) {
        sum += widen(x[g.x_at(n, ih, iw, c)]);
      });
      store(y, g.y_at(n, oh, ow, c), sum * share);
    });
  });
}

}  // namespace

extern const OpDef op_avg_pool{
    .name = "avg_pool",
    .summary = "mean of each window",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = pool_work,
    .samples = pool_samples,
    .rows = rows_by_slice<3>,
};

}  // namespace thimble
