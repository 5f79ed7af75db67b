#include "backend/cpu/convolve/convolution.h"

namespace thimble {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

Desc weights_as(const Convolution& c, Tag plain, Tag grouped) {
  const auto type = dnnl_type(c.dtype);
  if (c.groups == 1) return Desc({c.out_c, c.in_c, c.kernel_h, c.kernel_w}, type, plain);
  return Desc({c.groups, c.out_c / c.groups, c.in_c / c.groups, c.kernel_h, c.kernel_w}, type,
              grouped);
}

}  // namespace

Convolution Convolution::in(DType type) const {
  Convolution c = *this;
  c.dtype = c.result = type;
  return c;
}

Convolution Convolution::of(int64_t images) const {
  Convolution c = *this;
  c.batch = images;
  return c;
}

Convolution Convolution::turned() const {
  Convolution c = *this;
  std::swap(c.in_h, c.out_h);
  std::swap(c.in_w, c.out_w);
  std::swap(c.in_c, c.out_c);
  c.pad_h = dilation_h * (kernel_h - 1) - pad_h;
  c.pad_w = dilation_w * (kernel_w - 1) - pad_w;
  return c;
}

Desc Convolution::x() const { return Desc({batch, in_c, in_h, in_w}, dnnl_type(dtype), Tag::nhwc); }
Desc Convolution::y() const {
  return Desc({batch, out_c, out_h, out_w}, dnnl_type(dtype), Tag::nhwc);
}
Desc Convolution::weights() const { return weights_as(*this, Tag::ohwi, Tag::gohwi); }
Desc Convolution::any_weights() const { return weights_as(*this, Tag::any, Tag::any); }

Convolution convolution_of(const TensorType& x, const TensorType& w, const TensorType& y,
                           const Attrs& attrs) {
  check_countable("conv2d", {x.shape[0], x.shape[1] * x.shape[2], y.shape[1] * y.shape[2],
                             x.shape[3], y.shape[3], w.elements()});
  const int64_t stride = attrs.integer("stride", 1), pad = attrs.integer("pad", 0);
  const int64_t dilation = attrs.integer("dilation", 1);
  return {.batch = x.shape[0],
          .in_h = x.shape[1],
          .in_w = x.shape[2],
          .in_c = x.shape[3],
          .out_h = y.shape[1],
          .out_w = y.shape[2],
          .out_c = y.shape[3],
          .kernel_h = w.shape[1],
          .kernel_w = w.shape[2],
          .stride_h = stride,
          .stride_w = attrs.integer("stride_w", stride),
          .pad_h = pad,
          .pad_w = attrs.integer("pad_w", pad),
          .dilation_h = dilation,
          .dilation_w = attrs.integer("dilation_w", dilation),
          .groups = attrs.integer("groups", 1)};
}

}  // namespace thimble
