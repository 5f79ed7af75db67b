// A convolution, or one of its gradients, as products of our own (multiply/packed_product.h), for
// what oneDNN does only on top of its gemm. A patch is what a kernel sees from one pixel; patches
// are gathered as the product asks for them, and never stored.
#pragma once

#include "backend/cpu/convolve/convolution.h"
#include "backend/cpu/multiply/packed_product.h"

namespace thimble {

enum class ConvolutionPart : uint8_t { forward, backward_data, backward_weights };

class PatchProduct {
 public:
  PatchProduct() = default;
  PatchProduct(ConvolutionPart part, const Convolution& c, bool add);

  explicit operator bool() const { return static_cast<bool>(product_); }
  size_t scratch_bytes() const { return product_.scratch_bytes(); }
  std::string name() const { return "patches, " + product_.name(); }
  // (first, second) -> result: (x, w) -> y, (dy, w) -> dx or (x, dy) -> dw. Weights have our
  // layout.
  void run(const float* first, const float* second, float* result, std::byte* scratch) const;

 private:
  ConvolutionPart part_ = {};
  Convolution c_ = {};
  PackedProduct product_;
};

}  // namespace thimble
