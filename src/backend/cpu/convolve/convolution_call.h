// One of the three products of a convolution: oneDNN's where it works in memory that it is given,
// else, of f32 images, our own (patch_product.h).
#pragma once

#include "backend/cpu/convolve/patch_product.h"

namespace thimble {

class ConvolutionCall {
 public:
  ConvolutionCall() = default;
  // `add`: forward only. Throws dnnl::error when the library cannot do it, or only by widening
  // 16-bit numbers.
  ConvolutionCall(ConvolutionPart part, const Convolution& c, bool add = false);

  // The layout that weights, or their gradient, have in it.
  const dnnl::memory::desc& weights() const { return weights_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  // The implementation that runs it, and `how`: "onednn turned forward jit:avx2".
  std::string name(std::string_view how = "") const { return who_ + std::string(how) + what_; }
  // (first, second) -> result: (x, w) -> y, (dy, w) -> dx or (x, dy) -> dw.
  void run(const void* first, const void* second, void* result, std::byte* scratch);

 private:
  DnnlCall call_;
  PatchProduct own_;
  dnnl::memory::desc weights_;
  size_t scratch_bytes_ = 0;
  std::string who_, what_;
};

}  // namespace thimble
