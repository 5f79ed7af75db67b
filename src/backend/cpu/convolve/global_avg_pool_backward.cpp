// global_avg_pool_backward: one pass; every image is one thread's.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const Shape& shape = args.outputs[0].type.shape;
  const int64_t pixels = shape[1] * shape[2], channels = shape[3];
  const auto count = static_cast<float>(pixels);
  for (int64_t n = begin; n < end; ++n) {
    const float* dy = args.inputs[0].as<const float>() + n * channels;
    float* dx = args.outputs[0].as<float>() + n * pixels * channels;
    for (int64_t p = 0; p < pixels; ++p) {
      map_range(dx + p * channels, 0, channels, args.adds_into(0),
                [=](int64_t c) { return dy[c] / count; });
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const Shape& dx = s.outputs[0].shape;
  return make_row_kernel(s, dx[0], dx.product(1, 4), loop);
}

}  // namespace

extern const CpuKernel cpu_global_avg_pool_backward{"global_avg_pool_backward", make};

}  // namespace thimble
