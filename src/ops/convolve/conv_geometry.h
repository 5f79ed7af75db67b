// The geometry shared by conv2d and its two gradients.
//
// Activations are channels-last: x [N, H, W, C]. Weights are [O, kH, kW, C / groups].
#pragma once

#include <array>

#include "graph/op.h"

namespace thimble {

struct ConvGeometry {
  int64_t batch, in_h, in_w, in_c;
  int64_t out_h, out_w, out_c;
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;

  int64_t in_per_group() const { return in_c / groups; }
  int64_t out_per_group() const { return out_c / groups; }
  // The first input channel that output channel o sees.
  int64_t first_input(int64_t o) const { return o / out_per_group() * in_per_group(); }
  Shape x() const { return {batch, in_h, in_w, in_c}; }
  Shape w() const { return {out_c, kernel_h, kernel_w, in_per_group()}; }
  Shape y() const { return {batch, out_h, out_w, out_c}; }
  int64_t x_at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * in_h + h) * in_w + w) * in_c + c;
  }
  int64_t w_at(int64_t o, int64_t h, int64_t w, int64_t c) const {
    return ((o * kernel_h + h) * kernel_w + w) * in_per_group() + c;
  }
  int64_t y_at(int64_t n, int64_t h, int64_t w, int64_t o) const {
    return ((n * out_h + h) * out_w + w) * out_c + o;
  }
  double flops() const {
    return 2.0 * static_cast<double>(batch * out_h * out_w * out_c) *
           static_cast<double>(kernel_h * kernel_w * in_per_group());
  }
};

// Reads attrs stride (1), pad (0) and dilation (1: how far apart the taps of a kernel are), which go
// for both axes unless stride_w, pad_w or dilation_w say otherwise of the second, and groups (1).
// Throws UserError naming `op` when x and w do not fit each other.
ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& w, const Attrs& attrs);

// Calls body(n, oh, ow, o) for every output element.
template <class Body>
void for_each_output(const ConvGeometry& g, Body&& body) {
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t oh = 0; oh < g.out_h; ++oh) {
      for (int64_t ow = 0; ow < g.out_w; ++ow) {
        for (int64_t o = 0; o < g.out_c; ++o) body(n, oh, ow, o);
      }
    }
  }
}

// Calls body(ih, iw, kh, kw, c) for every weight that output (oh, ow) reads inside the image; c
// counts inside the group.
template <class Body>
void for_each_tap(const ConvGeometry& g, int64_t oh, int64_t ow, Body&& body) {
  for (int64_t kh = 0; kh < g.kernel_h; ++kh) {
    const int64_t ih = oh * g.stride_h - g.pad_h + kh * g.dilation_h;
    if (ih < 0 || ih >= g.in_h) continue;
    for (int64_t kw = 0; kw < g.kernel_w; ++kw) {
      const int64_t iw = ow * g.stride_w - g.pad_w + kw * g.dilation_w;
      if (iw < 0 || iw >= g.in_w) continue;
      for (int64_t c = 0; c < g.in_per_group(); ++c) body(ih, iw, kh, kw, c);
    }
  }
}

// What a gradient of conv2d is checked on: {w, dy} -> dx, or {x, dy} -> dw.
std::vector<Sample> conv_backward_samples(bool of_data);
// Throws UserError naming `op` unless dy is what the geometry makes.
void check_conv_gradient(std::string_view op, const ConvGeometry& g, const Shape& dy);

// The cases all three ops are checked on: strides, paddings, dilations, groups, a
// group per channel, odd channel counts.
struct ConvCase {
  Shape x, w;
  int64_t stride, pad, groups;
  int64_t dilation = 1;
  int64_t stride_w = 0, pad_w = -1;  // as of the other axis, unless said

  Attrs attrs() const;
};
const std::array<ConvCase, 10>& conv_cases();

}  // namespace thimble
