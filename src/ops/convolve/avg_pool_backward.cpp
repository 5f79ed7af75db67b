// avg_pool_backward(dy [N,H',W',C]) -> dx [N,H,W,C].
// attrs: avg_pool's, and in_h, in_w, which dy alone does not tell.
#include "ops/convolve/pool_geometry.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("avg_pool_backward", inputs);
  return {
      {pool_backward_geometry("avg_pool_backward", inputs[0].shape, attrs).x(), inputs[0].dtype}};
}

void reference(const KernelArgs& args) {
  const PoolGeometry g =
      pool_backward_geometry("avg_pool_backward", args.inputs[0].type.shape, *args.attrs);
  run_pool_backward(args, g, g.window(), [](int64_t, int64_t) { return true; });
}

}  // namespace

extern const OpDef op_avg_pool_backward{
    .name = "avg_pool_backward",
    .summary = "gradient of avg_pool",
    .infer = infer,
    .reference = reference,
    .work = pool_backward_work,
    .samples = [] { return pool_backward_samples(false); },
    .accumulates = 1,
};

}  // namespace thimble
