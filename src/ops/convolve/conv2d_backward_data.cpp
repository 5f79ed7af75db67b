// conv2d_backward_data(w, dy) -> dx: the gradient of conv2d with respect to its image. attrs:
// conv2d's, and in_h, in_w, which dy alone does not tell when the stride is not 1. By itself it is
// a transposed convolution of dy, whose gradients are conv2d and its weight gradient.
#include "graph/builder.h"
#include "ops/convolve/conv_geometry.h"
#include "ops/reference.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

ConvGeometry geometry_of(const TensorType& w, const TensorType& dy, const Attrs& attrs) {
  user_check(dy.shape.rank() == 4 && w.shape.rank() == 4, "[conv2d_backward_data] wants 4 axes");
  const Shape x = {dy.shape[0], attrs.integer("in_h"), attrs.integer("in_w"),
                   w.shape[3] * attrs.integer("groups", 1)};
  const ConvGeometry g = conv_geometry("conv2d_backward_data", x, w.shape, attrs);
  check_conv_gradient("conv2d_backward_data", g, dy.shape);
  return g;
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("conv2d_backward_data", inputs, 2);
  return {{geometry_of(inputs[0], inputs[1], attrs).x(), inputs[1].dtype}};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) {
    const Shape w = g.build().shape(g.input(0));
    Attrs attrs = g.attrs();
    attrs.set("kernel_h", w[1]).set("kernel_w", w[2]);
    g.give(0, g.build().op("conv2d_backward_weights", {g.upstream(), g.input(1)}, attrs));
  }
  if (g.wants(1)) g.give(1, g.build().op("conv2d", {g.upstream(), g.input(0)}, g.attrs()));
}

// Gathers over outputs for each input element, so that nothing is summed in a stored dtype.
void reference(const KernelArgs& args) {
  const ConvGeometry g = geometry_of(args.inputs[0].type, args.inputs[1].type, *args.attrs);
  with_float_type(args.inputs[1].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* w = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dx = args.outputs[0].as<T>();
    for_each_pixel(g.x(), [&](int64_t n, int64_t ih, int64_t iw, int64_t c) {
      const int64_t group = c / g.in_per_group();
      Accumulator<T> sum = 0;
      g.for_each_seeing(ih, iw, [&](int64_t oh, int64_t ow, int64_t kh, int64_t kw) {
        for (int64_t k = 0; k < g.out_per_group(); ++k) {
          const int64_t o = group * g.out_per_group() + k;
          sum +=
              widen(w[g.w_at(o, kh, kw, c % g.in_per_group())]) * widen(dy[g.y_at(n, oh, ow, o)]);
        }
      });
      store(dx, g.x_at(n, ih, iw, c), sum, args.adds_into(0));
    });
  });
}

Work work(const Signature& s) {
  return {geometry_of(s.inputs[0], s.inputs[1], s.attrs).flops(), 0};
}

}  // namespace

extern const OpDef op_conv2d_backward_data{
    .name = "conv2d_backward_data",
    .summary = "gradient of conv2d with respect to its image",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = [] { return conv_backward_samples(true); },
    .rows = (rows_by_slice<3, 1>),
    .recompute = Recompute::costly,
    .accumulates = 1,
};

}  // namespace thimble
