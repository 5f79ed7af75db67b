// avg_pool: padding counts as zeros.
#include "backend/cpu/convolve/pooling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.inputs[0].type.shape, args.outputs[0].type.shape, *args.attrs);
  const float share = 1 / static_cast<float>(g.window());
  for (int64_t row = begin; row < end; ++row) {
    const float* image =
        args.inputs[0].as<const float>() + row / g.out_h * g.in_h * g.in_w * g.channels;
    for (int64_t ow = 0; ow < g.out_w; ++ow) {
      float* __restrict y = args.outputs[0].as<float>() + (row * g.out_w + ow) * g.channels;
      std::fill(y, y + g.channels, 0.0f);
      g.for_each_seen(row % g.out_h, ow, [&](int64_t ih, int64_t iw, int64_t, int64_t) {
        const float* __restrict x = image + g.x_at(0, ih, iw, 0);
        for (int64_t c = 0; c < g.channels; ++c) y[c] += x[c];
      });
      for (int64_t c = 0; c < g.channels; ++c) y[c] *= share;
    }
  }
}

THIMBLE_FOR_EACH_ISA void add_scaled(const float* __restrict x, int64_t count, float factor,
                                     float* __restrict y) {
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

void narrow_loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.inputs[0].type.shape, args.outputs[0].type.shape, *args.attrs);
  const float share = 1 / static_cast<float>(g.window());
  for (int64_t pixel = begin * g.out_w; pixel < end * g.out_w; ++pixel) {
    const int64_t row = pixel / g.out_w;
    const int64_t image = row / g.out_h * g.in_h * g.in_w * g.channels;
    for_pool_tiles(g.channels, [&](int64_t channel, int64_t count) {
      float x[kPoolTile], y[kPoolTile] = {};
      g.for_each_seen(row % g.out_h, pixel % g.out_w,
                      [&](int64_t ih, int64_t iw, int64_t, int64_t) {
                        widen(args.inputs[0], image + g.x_at(0, ih, iw, channel), count, x);
                        add_scaled(x, count, share, y);
                      });
      narrow(y, args.outputs[0], pixel * g.channels + channel, count);
    });
  }
}

}  // namespace

extern const CpuKernel cpu_avg_pool{"avg_pool", pooling<loop, narrow_loop>};

}  // namespace thimble
