// avg_pool_backward: each input gathers from the windows that see it.
#include "backend/cpu/convolve/pooling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.outputs[0].type.shape, args.inputs[0].type.shape, *args.attrs);
  const float share = 1 / static_cast<float>(g.window());
  for (int64_t row = begin; row < end; ++row) {
    const float* gradients =
        args.inputs[0].as<const float>() + row / g.in_h * g.out_h * g.out_w * g.channels;
    for (int64_t iw = 0; iw < g.in_w; ++iw) {
      float* __restrict dx = args.outputs[0].as<float>() + (row * g.in_w + iw) * g.channels;
      if (!args.adds_into(0)) std::fill(dx, dx + g.channels, 0.0f);
      g.for_each_seeing(row % g.in_h, iw, [&](int64_t oh, int64_t ow, int64_t, int64_t) {
        const float* __restrict dy = gradients + g.y_at(0, oh, ow, 0);
        for (int64_t c = 0; c < g.channels; ++c) dx[c] += share * dy[c];
      });
    }
  }
}

THIMBLE_FOR_EACH_ISA void add_scaled(const float* __restrict x, int64_t count, float factor,
                                     float* __restrict y) {
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

void narrow_loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.outputs[0].type.shape, args.inputs[0].type.shape, *args.attrs);
  const float share = 1 / static_cast<float>(g.window());
  for (int64_t pixel = begin * g.in_w; pixel < end * g.in_w; ++pixel) {
    const int64_t row = pixel / g.in_w;
    const int64_t image = row / g.in_h * g.out_h * g.out_w * g.channels;
    for_pool_tiles(g.channels, [&](int64_t channel, int64_t count) {
      const int64_t to = pixel * g.channels + channel;
      float dx[kPoolTile] = {}, dy[kPoolTile];
      if (args.adds_into(0)) widen(args.outputs[0], to, count, dx);
      g.for_each_seeing(row % g.in_h, pixel % g.in_w,
                        [&](int64_t oh, int64_t ow, int64_t, int64_t) {
                          widen(args.inputs[0], image + g.y_at(0, oh, ow, channel), count, dy);
                          add_scaled(dy, count, share, dx);
                        });
      narrow(dx, args.outputs[0], to, count);
    });
  }
}

}  // namespace

extern const CpuKernel cpu_avg_pool_backward{"avg_pool_backward", pooling<loop, narrow_loop>};

}  // namespace thimble
