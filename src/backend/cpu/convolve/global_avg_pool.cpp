// global_avg_pool: one pass; every image is one thread's.
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

template <int kChannels>
THIMBLE_INLINE void average(const float* x, int64_t pixels, int64_t channels, float* y) {
  float sum[kChannels] = {};
  for (int64_t p = 0; p < pixels; ++p) {
    for (int c = 0; c < kChannels; ++c) sum[c] += x[p * channels + c];
  }
  for (int c = 0; c < kChannels; ++c) y[c] = sum[c] / static_cast<float>(pixels);
}

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const Shape& shape = args.inputs[0].type.shape;
  const int64_t pixels = shape[1] * shape[2], channels = shape[3];
  for (int64_t n = begin; n < end; ++n) {
    const float* x = args.inputs[0].as<const float>() + n * pixels * channels;
    float* y = args.outputs[0].as<float>() + n * channels;
    for_each_tile<64>(
        channels, [&](auto width, int64_t c) __attribute__((always_inline)) {
          average<width>(x + c, pixels, channels, y + c);
        });
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const Shape& x = s.inputs[0].shape;
  return make_row_kernel(s, x[0], x.product(1, 4), loop);
}

}  // namespace

extern const CpuKernel cpu_global_avg_pool{"global_avg_pool", make};

}  // namespace thimble
