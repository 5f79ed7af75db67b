// resample(x [N,H,W,C]) -> y [N,h,w,C]: images in another size; attrs h, w, mode (nearest,
// bilinear, corners or average: resample_geometry.h).
#include "ops/convolve/resample.h"

#include "graph/builder.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Shape x = g.build().shape(g.input(0));
  Attrs attrs = g.attrs();
  attrs.set("h", x[1]).set("w", x[2]);
  g.give(0, g.build().op("resample_backward", {g.upstream()}, attrs));
}

}  // namespace

extern const OpDef op_resample{
    .name = "resample",
    .summary = "images in another size: nearest, bilinear or averages",
    .infer = [](std::span<const TensorType> inputs,
                const Attrs& attrs) { return infer_resample("resample", inputs, attrs); },
    .gradient = gradient,
    .reference = [](const KernelArgs& args) { run_resample("resample", args, false); },
    .work = resample_work,
    .samples = [] { return resample_samples(false); },
    .rows = rows_by_slice<3>,
    .accumulates = 1,
};

}  // namespace thimble
