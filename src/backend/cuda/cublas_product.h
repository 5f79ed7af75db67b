// A product of cuBLASLt's, bound to one of its algorithms: y [P,M,N] = op(a) op(b), or added into
// y, row-major; sums have one order, in scratch of known size.
#pragma once

#include "backend/cuda/device.h"
#include "base/bytes.h"
#include "base/dtype.h"

namespace thimble {

struct ProductShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // a is stored [K,M], b [N,K]
};

class CublasProduct {
 public:
  // `factors` is the dtype of a and b, `result` that of y. `most_scratch`: no more than that.
  CublasProduct(CudaDevice& device, const ProductShape& shape, DType factors, DType result,
                bool add, Bytes most_scratch);
  ~CublasProduct();
  CublasProduct(const CublasProduct&) = delete;
  CublasProduct& operator=(const CublasProduct&) = delete;

  Bytes scratch() const;
  void run(const void* a, const void* b, void* y, std::byte* scratch) const;

 private:
  void choose(Bytes most_scratch);

  CudaDevice& device_;
  const float add_;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, y_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t used_ = 0;  // of the scratch
};

// Scratch that is little beside the matrices.
Bytes scratch_limit(const ProductShape& shape, DType dtype);

}  // namespace thimble
