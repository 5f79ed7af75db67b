// rotary(x [N,T,heads*D]) -> y like x: in each head, the pair (d, d + D/2) of position t is turned
// by the angle (offset + t) * base^(-2d/D). Attrs heads, rotated (how many of the first heads are
// turned; the others pass: all), base (10000), offset (0), inverse (0; 1 turns back). The gradient
// is the same op, turning the other way; nothing is saved.
#include <cmath>

#include "graph/builder.h"
#include "ops/attend/rotary_geometry.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("rotary", inputs, 1);
  rotary_geometry(inputs[0], attrs);
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (!g.upstream().valid() || !g.wants(0)) return;
  Attrs back = g.attrs();
  back.set("inverse", int64_t{g.attrs().integer("inverse", 0) == 0});
  g.give(0, g.build().op("rotary", {g.upstream()}, back));
}

void reference(const KernelArgs& args) {
  const RotaryGeometry g = rotary_geometry(args.inputs[0].type, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t row = 0; row < g.rows * g.positions; ++row) {
      const double t = static_cast<double>(g.offset + row % g.positions);
      for (int64_t c = g.rotated * g.size; c < g.heads * g.size; ++c) {
        y[row * g.heads * g.size + c] = x[row * g.heads * g.size + c];
      }
      for (int64_t d = 0; d < g.size / 2; ++d) {
        const double angle = t * g.frequency(d);
        const Real cosine = static_cast<Real>(std::cos(angle));
        const Real sine = static_cast<Real>(g.inverse ? -std::sin(angle) : std::sin(angle));
        for (int64_t head = 0; head < g.rotated; ++head) {
          const int64_t at = (row * g.heads + head) * g.size + d, far = at + g.size / 2;
          const Real a = widen(x[at]), b = widen(x[far]);
          store(y, at, a * cosine - b * sine);
          store(y, far, b * cosine + a * sine);
        }
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, int64_t heads, int64_t rotated, bool inverse, int64_t offset) {
    return Sample{.inputs = {{x}},
                  .attrs = {{"heads", heads},
                            {"rotated", rotated},
                            {"inverse", int64_t{inverse}},
                            {"offset", offset}},
                  .differentiate = {0}};
  };
  return {sample({2, 5, 12}, 3, 3, false, 0), sample({2, 7, 32}, 1, 1, true, 3),
          sample({1, 6, 96}, 6, 4, false, 0), sample({3, 1, 4}, 2, 1, true, 10)};
}

}  // namespace

extern const OpDef op_rotary{
    .name = "rotary",
    .summary = "turns pairs of channels by angles that grow with the position",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .in_place = {{0, 0}},
};

}  // namespace thimble
