// conv2d_backward_weights(x, dy) -> dw: the gradient of conv2d with respect to its weights.
// attrs: conv2d's, and kernel_h, kernel_w, which the images alone do not tell.
#include "ops/convolve/conv_geometry.h"
#include "ops/reference.h"

namespace thimble {
namespace {

ConvGeometry geometry_of(const TensorType& x, const TensorType& dy, const Attrs& attrs) {
  user_check(x.shape.rank() == 4 && dy.shape.rank() == 4, "[conv2d_backward_weights] wants 4 axes");
  const Shape w = {dy.shape[3], attrs.integer("kernel_h"), attrs.integer("kernel_w"),
                   x.shape[3] / attrs.integer("groups", 1)};
  const ConvGeometry g = conv_geometry("conv2d_backward_weights", x.shape, w, attrs);
  check_conv_gradient("conv2d_backward_weights", g, dy.shape);
  return g;
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("conv2d_backward_weights", inputs, 2);
  return {{geometry_of(inputs[0], inputs[1], attrs).w(), inputs[1].dtype}};
}

void reference(const KernelArgs& args) {
  const ConvGeometry g = geometry_of(args.inputs[0].type, args.inputs[1].type, *args.attrs);
  with_float_type(args.inputs[1].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    const T* dy = args.inputs[1].as<T>();
    T* dw = args.outputs[0].as<T>();
    const auto gather = [&](int64_t o, int64_t kh, int64_t kw, int64_t c) {
      Accumulator<T> sum = 0;
      for (int64_t n = 0; n < g.batch; ++n) {
        for (int64_t oh = 0; oh < g.out_h; ++oh) {
          const int64_t ih = oh * g.stride_h - g.pad_h + kh * g.dilation_h;
          if (ih < 0 || ih >= g.in_h) continue;
          for (int64_t ow = 0; ow < g.out_w; ++ow) {
            const int64_t iw = ow * g.stride_w - g.pad_w + kw * g.dilation_w;
            if (iw < 0 || iw >= g.in_w) continue;
            sum +=
                widen(x[g.x_at(n, ih, iw, g.first_input(o) + c)]) * widen(dy[g.y_at(n, oh, ow, o)]);
          }
        }
      }
      store(dw, g.w_at(o, kh, kw, c), sum, args.adds_into(0));
    };
    for (int64_t o = 0; o < g.out_c; ++o) {
      for (int64_t kh = 0; kh < g.kernel_h; ++kh) {
        for (int64_t kw = 0; kw < g.kernel_w; ++kw) {
          for (int64_t c = 0; c < g.in_per_group(); ++c) gather(o, kh, kw, c);
        }
      }
    }
  });
}

Work work(const Signature& s) {
  return {geometry_of(s.inputs[0], s.inputs[1], s.attrs).flops(), 0};
}

}  // namespace

extern const OpDef op_conv2d_backward_weights{
    .name = "conv2d_backward_weights",
    .summary = "gradient of conv2d with respect to its weights",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = [] { return conv_backward_samples(false); },
    .recompute = Recompute::costly,
    .accumulates = 1,
};

}  // namespace thimble
