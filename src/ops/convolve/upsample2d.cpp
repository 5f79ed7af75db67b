// upsample2d(x [N,H,W,C]) -> y [N,fH,fW,C]: every pixel as a square of f x f equal ones (nearest
// neighbour); attr factor.
#include <algorithm>

#include "graph/builder.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("upsample2d", inputs);
  const Shape& x = inputs[0].shape;
  const int64_t factor = attrs.integer("factor");
  user_check(x.rank() == 4, "[upsample2d] wants images [N,H,W,C], got {}", to_string(x));
  user_check(factor >= 1, "[upsample2d] factor is 1 or more, not {}", factor);
  return {{{x[0], factor * x[1], factor * x[2], x[3]}, inputs[0].dtype}};
}

// A pixel's gradient is the sum over its square: the mean, times the number of terms.
void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const int64_t factor = g.attrs().integer("factor");
  const ValueId mean = g.build().op("avg_pool", {g.upstream()},
                                    {{"kernel", factor}, {"stride", factor}, {"pad", int64_t{0}}});
  g.give(0, g.build().op("scale", {mean}, {{"factor", static_cast<double>(factor * factor)}}));
}

void reference(const KernelArgs& args) {
  const Shape& shape = args.inputs[0].type.shape;
  const int64_t factor = args.attrs->integer("factor"), width = shape[2], channels = shape[3];
  const int64_t row = factor * width * channels;  // of y
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* from = args.inputs[0].as<T>();
    T* to = args.outputs[0].as<T>();
    for (int64_t line = 0; line < shape[0] * shape[1]; ++line) {
      T* const first = to;
      for (int64_t w = 0; w < width; ++w, from += channels) {
        for (int64_t i = 0; i < factor; ++i) to = std::copy(from, from + channels, to);
      }
      for (int64_t i = 1; i < factor; ++i) to = std::copy(first, first + row, to);
    }
  });
}

std::vector<Sample> samples() {
  const auto by = [](int64_t factor) { return Attrs{{"factor", factor}}; };
  return {
      {.inputs = {{{2, 4, 4, 16}}}, .attrs = by(2), .differentiate = {0}},
      {.inputs = {{{3, 1, 5, 7}}}, .attrs = by(3), .differentiate = {0}},
      {.inputs = {{{1, 2, 3, 1}}}, .attrs = by(1), .differentiate = {0}},
  };
}

}  // namespace

extern const OpDef op_upsample2d{
    .name = "upsample2d",
    .summary = "images enlarged by a whole factor, nearest neighbour",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
};

}  // namespace thimble
