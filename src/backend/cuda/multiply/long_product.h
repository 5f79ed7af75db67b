// y [M,N] = op(a) op(b), or added into y, whose sums are cut into parts where that keeps the device
// busy (product_cut.h): the products of all parts are one launch, what is left over a small one,
// and a last one adds up their sums, in order, and rounds once.
//
//   scratch  | sums of parts f32 [parts,M,N] | of the rest [M,N] | products' |
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/multiply/product_cut.h"

namespace thimble {

class LongProduct {
 public:
  // All matrices are of `dtype`.
  LongProduct(CudaDevice& device, const ProductShape& shape, DType dtype, bool add);

  std::string name() const;  // "cublaslt in 4 parts"
  Bytes scratch() const;
  void run(const void* a, const void* b, void* y, std::byte* scratch) const;

 private:
  void cut_up(const ProductCut& cut);
  Bytes sums_bytes() const;
  void add_up(const float* sums, void* y) const;

  CudaDevice& device_;
  const ProductShape shape_;
  const DType dtype_;
  const bool add_;
  ProductCut cut_;
  std::unique_ptr<CublasProduct> product_, rest_;  // of all parts, or the whole
};

}  // namespace thimble
