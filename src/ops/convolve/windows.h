// Windows over the two axes of images, as convolutions and pools move them: what they see, and
// which of them see a place. Forced inline, since kernels walk them in their innermost loops but
// one.
#pragma once

#include "base/error.h"
#include "graph/op.h"

namespace thimble {

struct Windows {
  int64_t in_h, in_w, out_h, out_w;
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w, pad_h, pad_w;
  int64_t dilation_h = 1, dilation_w = 1;  // how far apart what a window sees is

  // How many there are; UserError naming `op` where none fits into the padded image x [N,H,W,C].
  void fit(std::string_view op, std::string_view what, const Shape& x) {
    const int64_t span_h = in_h + 2 * pad_h - dilation_h * (kernel_h - 1) - 1;
    const int64_t span_w = in_w + 2 * pad_w - dilation_w * (kernel_w - 1) - 1;
    user_check(span_h >= 0 && span_w >= 0, "[{}] {} {}x{} is larger than the padded image {}", op,
               what, kernel_h, kernel_w, to_string(x));
    out_h = span_h / stride_h + 1;
    out_w = span_w / stride_w + 1;
  }

  // Calls body(ih, iw, kh, kw) for what window (oh, ow) sees inside the image, row by row.
  template <class Body>
  [[gnu::always_inline]] void for_each_seen(int64_t oh, int64_t ow, const Body& body) const {
    for (int64_t kh = 0; kh < kernel_h; ++kh) {
      const int64_t ih = oh * stride_h - pad_h + kh * dilation_h;
      if (ih < 0 || ih >= in_h) continue;
      for (int64_t kw = 0; kw < kernel_w; ++kw) {
        const int64_t iw = ow * stride_w - pad_w + kw * dilation_w;
        if (iw < 0 || iw >= in_w) continue;
        body(ih, iw, kh, kw);
      }
    }
  }

  // Calls body(oh, ow, kh, kw) for every window that sees (ih, iw), and where in it.
  template <class Body>
  [[gnu::always_inline]] void for_each_seeing(int64_t ih, int64_t iw, const Body& body) const {
    for (int64_t kh = 0; kh < kernel_h; ++kh) {
      const int64_t down = ih + pad_h - kh * dilation_h;
      if (down < 0 || down % stride_h != 0 || down / stride_h >= out_h) continue;
      for (int64_t kw = 0; kw < kernel_w; ++kw) {
        const int64_t right = iw + pad_w - kw * dilation_w;
        if (right < 0 || right % stride_w != 0 || right / stride_w >= out_w) continue;
        body(down / stride_h, right / stride_w, kh, kw);
      }
    }
  }
};

// Calls body(n, h, w, c) for every element of images [N,H,W,C].
template <class Body>
void for_each_pixel(const Shape& images, Body&& body) {
  for (int64_t n = 0; n < images[0]; ++n) {
    for (int64_t h = 0; h < images[1]; ++h) {
      for (int64_t w = 0; w < images[2]; ++w) {
        for (int64_t c = 0; c < images[3]; ++c) body(n, h, w, c);
      }
    }
  }
}

}  // namespace thimble
