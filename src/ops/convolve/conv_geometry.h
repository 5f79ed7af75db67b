// The geometry shared by conv2d and its two gradients.
//
// Activations are channels-last: x [N, H, W, C]. Weights are [O, kH, kW, C / groups].
#pragma once

#include <array>

#include "ops/convolve/windows.h"

namespace thimble {

struct ConvGeometry : Windows {
  int64_t batch, in_c, out_c, groups;

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

// Reads attrs stride (1), pad (0) and dilation (1: how far apart the taps of a kernel are), which
// go for both axes unless stride_w, pad_w or dilation_w say otherwise of the second, and groups
// (1). Throws UserError naming `op` when x and w do not fit each other.
ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& w, const Attrs& attrs);

// Samples for a gradient of conv2d: {w, dy} -> dx, or {x, dy} -> dw.
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
const std::array<ConvCase, 11>& conv_cases();

}  // namespace thimble
