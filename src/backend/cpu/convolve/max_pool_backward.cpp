// max_pool_backward: each input gathers from the windows that see it, so nothing is written twice.
#include "backend/cpu/convolve/pooling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.outputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t image = row / g.in_h * g.out_h * g.out_w * g.channels;
    const uint8_t* indices = args.inputs[0].as<const uint8_t>() + image;
    const float* gradients = args.inputs[1].as<const float>() + image;
    for (int64_t iw = 0; iw < g.in_w; ++iw) {
      float* __restrict dx = args.outputs[0].as<float>() + (row * g.in_w + iw) * g.channels;
      if (!args.adds_into(0)) std::fill(dx, dx + g.channels, 0.0f);
      g.for_each_seeing(row % g.in_h, iw, [&](int64_t oh, int64_t ow, int64_t kh, int64_t kw) {
        const uint8_t* __restrict index = indices + g.y_at(0, oh, ow, 0);
        const float* __restrict dy = gradients + g.y_at(0, oh, ow, 0);
        const int64_t place = g.place(kh, kw);
        for (int64_t c = 0; c < g.channels; ++c) dx[c] += index[c] == place ? dy[c] : 0;
      });
    }
  }
}

THIMBLE_FOR_EACH_ISA void add_where(const uint8_t* __restrict index, int64_t place,
                                    const float* __restrict dy, int64_t count,
                                    float* __restrict dx) {
  for (int64_t c = 0; c < count; ++c) dx[c] += index[c] == place ? dy[c] : 0;
}

void narrow_loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.outputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  for (int64_t pixel = begin * g.in_w; pixel < end * g.in_w; ++pixel) {
    const int64_t row = pixel / g.in_w;
    const int64_t image = row / g.in_h * g.out_h * g.out_w * g.channels;
    for_pool_tiles(g.channels, [&](int64_t channel, int64_t count) {
      const int64_t to = pixel * g.channels + channel;
      float dx[kPoolTile] = {}, dy[kPoolTile];
      if (args.adds_into(0)) widen(args.outputs[0], to, count, dx);
      g.for_each_seeing(
          row % g.in_h, pixel % g.in_w, [&](int64_t oh, int64_t ow, int64_t kh, int64_t kw) {
            const int64_t from = image + g.y_at(0, oh, ow, channel);
            widen(args.inputs[1], from, count, dy);
            add_where(args.inputs[0].as<const uint8_t>() + from, g.place(kh, kw), dy, count, dx);
          });
      narrow(dx, args.outputs[0], to, count);
    });
  }
}

}  // namespace

extern const CpuKernel cpu_max_pool_backward{"max_pool_backward", pooling<loop, narrow_loop>};

}  // namespace thimble
