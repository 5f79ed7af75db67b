// The product that a recurrent layer makes in every time step, y [M,N] = a op(b) of few rows. By
// itself it keeps little of the device busy. So its depth may be cut into parts, each with a result
// of its own, in f32, which the launch behind it adds up:
//
//   y [parts,M,N]  | a[:, 0:k/2] b[0:k/2] | a[:, k/2:k] b[k/2:k] |
//
// Into how many, and by which of cuBLASLt's algorithms, is one of several variants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/multiply/cublas_product.h"

namespace thimble {

class StepProduct {
 public:
  // The first variant keeps the device busy; `shape.parts` and `shape.batch` are 1.
  StepProduct(CudaDevice& device, const ProductShape& shape, DType factors);

  int variants() const { return static_cast<int>(variants_.size()); }
  int used() const { return used_; }
  void use(int variant);
  std::string name() const;  // "cublaslt in 4 parts, guess 2"

  int parts() const { return static_cast<int>(current().parts); }
  // Of y.
  Bytes bytes() const { return Bytes(current().parts * results_ * int64_t{sizeof(float)}); }
  Bytes scratch() const { return current().product->scratch(); }
  void run(const void* a, const void* b, float* y, std::byte* scratch) const {
    current().product->run(a, b, y, scratch);
  }

 private:
  struct Variant {
    CublasProduct* product;
    int64_t parts;
    int guess;
  };
  const Variant& current() const { return variants_[static_cast<size_t>(used_)]; }

  const int64_t results_;  // M N
  std::vector<std::unique_ptr<CublasProduct>> products_;
  std::vector<Variant> variants_;
  int used_ = 0;
};

}  // namespace thimble
