// Shared by conv2d and its two gradients: activations stay channels-last, weights are brought from
// [O,kH,kW,C/groups] into the layout a primitive likes best at every call (packed_weights.h).
#pragma once

#include "backend/cpu/dnnl.h"

namespace thimble {

struct Convolution {
  int64_t batch, in_h, in_w, in_c;
  int64_t out_h, out_w, out_c;
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
  DType dtype = DType::f32;   // of images and weights, as the primitive sees them
  DType result = DType::f32;  // of what it computes: f32, or dtype

  // The same on numbers of that dtype, the result included.
  Convolution in(DType type) const;
  // Of the first `images` of the batch.
  Convolution of(int64_t images) const;
  // REQUIRES: strides of 1. The one whose x is this one's dy and whose y is its dx, with the
  // weights turned by 180 degrees and inputs and outputs exchanged.
  Convolution turned() const;

  // x [N,H,W,C] and y [N,H',W',O] as oneDNN sees them.
  dnnl::memory::desc x() const;
  dnnl::memory::desc y() const;
  // Our layout of the weights, and "any layout".
  dnnl::memory::desc weights() const;
  dnnl::memory::desc any_weights() const;

  dnnl::memory::dims strides() const { return {stride_h, stride_w}; }
  // As oneDNN counts them: what lies between two taps.
  dnnl::memory::dims dilations() const { return {dilation_h - 1, dilation_w - 1}; }
  dnnl::memory::dims pads() const { return {pad_h, pad_w}; }
  // Packed weights, in f32.
  int64_t bytes_per_output() const {
    return kernel_h * kernel_w * (in_c / groups) * static_cast<int64_t>(sizeof(float));
  }
  size_t weight_count() const {
    return static_cast<size_t>(out_c * kernel_h * kernel_w * (in_c / groups));
  }
};

// A new K(convolution, s, ...): in 16 bits on the images as they are where the library can, else
// one that stages them in f32; or null.
template <class K, class... Args>
std::unique_ptr<Kernel> make_narrow_or_staged(const Convolution& c, const Signature& s,
                                              const Args&... args) {
  if (s.outputs[0].dtype == DType::bf16) {
    auto kernel = make_if_supported<K>(c.in(DType::bf16), s, args...);
    if (kernel != nullptr) return kernel;
  }
  return make_if_supported<K>(c, s, args...);
}

Convolution convolution_of(const TensorType& x, const TensorType& w, const TensorType& y,
                           const Attrs& attrs);

}  // namespace thimble
