// max_pool(x [N,H,W,C]) -> (y [N,H',W',C], index u8 [N,H',W',C]); attrs kernel, stride, pad.
// index is the place of the maximum in its window, kh * kernel + kw: all that the gradient reads.
#include <cmath>

#include "graph/builder.h"
#include "ops/convolve/pool_geometry.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("max_pool", inputs);
  const PoolGeometry g = pool_geometry("max_pool", inputs[0].shape, attrs);
  user_check(g.kernel_h <= 15, "[max_pool] kernel {} is beyond 15: its index would not fit a byte",
             g.kernel_h);
  return {{g.y(), inputs[0].dtype}, {g.y(), DType::u8}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0) || !g.upstream().valid()) return;
  const Attrs attrs = pool_backward_attrs(g.build().shape(g.input(0)), g.attrs());
  g.give(0, g.build().op("max_pool_backward", {g.output(1), g.upstream()}, attrs));
}

// Of equal maxima the first wins; a NaN wins over everything.
void reference(const KernelArgs& args) {
  const PoolGeometry g = pool_geometry("max_pool", args.inputs[0].type.shape, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    uint8_t* index = args.outputs[1].as<uint8_t>();
    for_each_pixel(g.y(), [&](int64_t n, int64_t oh, int64_t ow, int64_t c) {
      Accumulator<T> best = 0;
      int64_t place = -1;
      g.for_each_seen(oh, ow, [&](int64_t ih, int64_t iw, int64_t kh, int64_t kw) {
        const Accumulator<T> value = widen(x[g.x_at(n, ih, iw, c)]);
        if (place >= 0 && !(value > best) && !std::isnan(value)) return;
        best = value;
        place = g.place(kh, kw);
      });
      store(y, g.y_at(n, oh, ow, c), best);
      index[g.y_at(n, oh, ow, c)] = static_cast<uint8_t>(place);
    });
  });
}

}  // namespace

extern const OpDef op_max_pool{
    .name = "max_pool",
    .summary = "largest element of each window, and its place",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = pool_work,
    .samples = pool_samples,
    .rows = rows_by_slice<3>,
};

}  // namespace thimble
