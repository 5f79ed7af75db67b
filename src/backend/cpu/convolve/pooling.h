// What the pooling kernels share: square windows over [N,H,W,C], walked pixel by pixel with the
// channels innermost.
#pragma once

#include "backend/cpu/rows.h"

namespace thimble {

struct Pooling {
  int64_t in_h, in_w, out_h, out_w, channels;
  int64_t kernel, stride, pad;
};

inline Pooling pooling_of(const Shape& x, const Shape& y, const Attrs& attrs) {
  const int64_t kernel = attrs.integer("kernel");
  return {x[1],
          x[2],
          y[1],
          y[2],
          x[3],
          kernel,
          attrs.integer("stride", kernel),
          attrs.integer("pad", 0)};
}

// Calls body(input, position) for what window (oh, ow) sees: `input` counts elements from the start
// of the image, `position` places of the window.
template <class Body>
THIMBLE_INLINE void for_each_seen(const Pooling& g, int64_t oh, int64_t ow, const Body& body) {
  for (int64_t kh = 0; kh < g.kernel; ++kh) {
    const int64_t ih = oh * g.stride - g.pad + kh;
    if (ih < 0 || ih >= g.in_h) continue;
    for (int64_t kw = 0; kw < g.kernel; ++kw) {
      const int64_t iw = ow * g.stride - g.pad + kw;
      if (iw < 0 || iw >= g.in_w) continue;
      body((ih * g.in_w + iw) * g.channels, kh * g.kernel + kw);
    }
  }
}

// Calls body(output, position) for every window that sees input (ih, iw).
template <class Body>
THIMBLE_INLINE void for_each_seeing(const Pooling& g, int64_t ih, int64_t iw, const Body& body) {
  for (int64_t kh = 0; kh < g.kernel; ++kh) {
    const int64_t down = ih + g.pad - kh;
    if (down < 0 || down % g.stride != 0 || down / g.stride >= g.out_h) continue;
    for (int64_t kw = 0; kw < g.kernel; ++kw) {
      const int64_t right = iw + g.pad - kw;
      if (right < 0 || right % g.stride != 0 || right / g.stride >= g.out_w) continue;
      body((down / g.stride * g.out_w + right / g.stride) * g.channels, kh * g.kernel + kw);
    }
  }
}

// The threads share out the rows of pixels of `images` [N,H,W,C].
inline std::unique_ptr<Kernel> make_pooling(const Shape& images, const Attrs& attrs, RowLoop loop) {
  const int64_t kernel = attrs.integer("kernel");
  return std::make_unique<RowKernel>(images[0] * images[1], images[2] * images[3] * kernel, loop);
}

}  // namespace thimble
