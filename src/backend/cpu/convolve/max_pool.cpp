// max_pool: of equal maxima the first wins; a NaN wins over everything.
#include "backend/cpu/convolve/pooling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.inputs[0].type.shape, args.outputs[0].type.shape, *args.attrs);
  for (int64_t row = begin; row < end; ++row) {
    const float* image =
        args.inputs[0].as<const float>() + row / g.out_h * g.in_h * g.in_w * g.channels;
    for (int64_t ow = 0; ow < g.out_w; ++ow) {
      const int64_t at = (row * g.out_w + ow) * g.channels;
      float* __restrict y = args.outputs[0].as<float>() + at;
      uint8_t* __restrict index = args.outputs[1].as<uint8_t>() + at;
      bool first = true;
      g.for_each_seen(row % g.out_h, ow, [&](int64_t ih, int64_t iw, int64_t kh, int64_t kw) {
        const float* __restrict x = image + g.x_at(0, ih, iw, 0);
        const auto place = static_cast<uint8_t>(g.place(kh, kw));
        for (int64_t c = 0; c < g.channels; ++c) {
          const bool wins = first || x[c] > y[c] || x[c] != x[c];
          y[c] = wins ? x[c] : y[c];
          index[c] = wins ? place : index[c];
        }
        first = false;
      });
    }
  }
}

THIMBLE_FOR_EACH_ISA void take_larger(const float* __restrict x, int64_t count, uint8_t place,
                                      bool first, float* __restrict y, uint8_t* __restrict index) {
  for (int64_t c = 0; c < count; ++c) {
    const bool wins = first || x[c] > y[c] || x[c] != x[c];
    y[c] = wins ? x[c] : y[c];
    index[c] = wins ? place : index[c];
  }
}

void narrow_loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const PoolGeometry g =
      pool_geometry(args.inputs[0].type.shape, args.outputs[0].type.shape, *args.attrs);
  for (int64_t pixel = begin * g.out_w; pixel < end * g.out_w; ++pixel) {
    const int64_t row = pixel / g.out_w;
    const int64_t image = row / g.out_h * g.in_h * g.in_w * g.channels;
    for_pool_tiles(g.channels, [&](int64_t channel, int64_t count) {
      const int64_t at = pixel * g.channels + channel;
      float x[kPoolTile], y[kPoolTile];
      bool first = true;
      g.for_each_seen(row % g.out_h, pixel % g.out_w,
                      [&](int64_t ih, int64_t iw, int64_t kh, int64_t kw) {
                        widen(args.inputs[0], image + g.x_at(0, ih, iw, channel), count, x);
                        take_larger(x, count, static_cast<uint8_t>(g.place(kh, kw)), first, y,
                                    args.outputs[1].as<uint8_t>() + at);
                        first = false;
                      });
      narrow(y, args.outputs[0], at, count);
    });
  }
}

}  // namespace

extern const CpuKernel cpu_max_pool{"max_pool", pooling<loop, narrow_loop>};

}  // namespace thimble
