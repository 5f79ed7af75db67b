// max_pool_backward(index u8, dy [N,H',W',C]) -> dx [N,H,W,C].
// attrs: max_pool's, and in_h, in_w, which dy alone does not tell.
#include "ops/convolve/pool_geometry.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("max_pool_backward", inputs, 2);
  check_floating("max_pool_backward", inputs[1]);
  user_check(inputs[0] == TensorType{inputs[1].shape, DType::u8},
             "[max_pool_backward] wants an index u8{}, got {}", to_string(inputs[1].shape),
             to_string(inputs[0]));
  return {
      {pool_backward_geometry("max_pool_backward", inputs[1].shape, attrs).x(), inputs[1].dtype}};
}

void reference(const KernelArgs& args) {
  const PoolGeometry g =
      pool_backward_geometry("max_pool_backward", args.inputs[1].type.shape, *args.attrs);
  const uint8_t* index = args.inputs[0].as<uint8_t>();
  run_pool_backward(args, g, 1,
                    [&](int64_t at, int64_t position) { return index[at] == position; });
}

}  // namespace

extern const OpDef op_max_pool_backward{
    .name = "max_pool_backward",
    .summary = "gradient of max_pool",
    .infer = infer,
    .reference = reference,
    .work = pool_backward_work,
    .samples = [] { return pool_backward_samples(true); },
    .accumulates = 1,
};

}  // namespace thimble
