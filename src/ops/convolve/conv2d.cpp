// conv2d(x [N,H,W,C], w [O,kH,kW,C/groups]) -> y [N,H',W',O]; attrs of conv_geometry.
#include "graph/builder.h"
#include "ops/convolve/conv_geometry.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("conv2d", inputs, 2);
  return {{conv_geometry("conv2d", inputs[0].shape, inputs[1].shape, attrs).y(), inputs[0].dtype}};
}

// The weight gradient comes first: after it, the activation x is dead while the data gradient is
// being written.
void gradient(GradientBuilder& g) {
  const ValueId dy = g.upstream();
  if (g.wants(1)) {
    Attrs attrs = g.attrs();
    attrs.set("kernel_h", g.build().shape(g.input(1))[1]);
    attrs.set("kernel_w", g.build().shape(g.input(1))[2]);
    g.give(1, g.build().op("conv2d_backward_weights", {g.input(0), dy}, attrs));
  }
  if (g.wants(0)) {
    Attrs attrs = g.attrs();
    attrs.set("in_h", g.build().shape(g.input(0))[1]);
    attrs.set("in_w", g.build().shape(g.input(0))[2]);
    g.give(0, g.build().op("conv2d_backward_data", {g.input(1), dy}, attrs));
  }
}

void reference(const KernelArgs& args) {
  const ConvGeometry g =
      conv_geometry("conv2d", args.inputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    const T* w = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    for_each_pixel(g.y(), [&](int64_t n, int64_t oh, int64_t ow, int64_t o) {
      Accumulator<T> sum = 0;
      g.for_each_seen(oh, ow, [&](int64_t ih, int64_t iw, int64_t kh, int64_t kw) {
        for (int64_t c = 0; c < g.in_per_group(); ++c) {
          sum += widen(x[g.x_at(n, ih, iw, g.first_input(o) + c)]) * widen(w[g.w_at(o, kh, kw, c)]);
        }
      });
      store(y, g.y_at(n, oh, ow, o), sum, args.adds_into(0));
    });
  });
}

Work work(const Signature& s) {
  return {conv_geometry("conv2d", s.inputs[0].shape, s.inputs[1].shape, s.attrs).flops(), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const ConvCase& c : conv_cases()) {
    result.push_back({.inputs = {{c.x}, {c.w}}, .attrs = c.attrs(), .differentiate = {0, 1}});
  }
  return and_added(std::move(result));
}

}  // namespace

extern const OpDef op_conv2d{
    .name = "conv2d",
    .summary = "2-D convolution, channels last",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .rows = rows_by_slice<3>,
    .recompute = Recompute::costly,
    .filter = 1,
    .maps = 1u << 1,
    .accumulates = 1,
};

}  // namespace thimble
