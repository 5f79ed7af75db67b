// A matrix product y [M,N] = op(a) op(b), or added: oneDNN's where it has a kernel of its own for
// these dtypes that works in memory that it is given, else our own. Factors in 16 bits are
// multiplied as they are; sums are f32, and a result in 16 bits is rounded once.
#pragma once

#include "backend/cpu/dnnl.h"
#include "backend/cpu/multiply/packed_product.h"

namespace thimble {

struct DnnlProductShape {
  int64_t batch = 1;  // of independent products, one behind the other
  int64_t m, n, k;
  // Stored with rows and columns exchanged.
  bool transpose_a = false, transpose_b = false;
  bool add = false;
  // A 16-bit `a` wants a `b` of the same type, and a 16-bit `result` any such factor.
  DType a = DType::f32, b = DType::f32, result = DType::f32;

  void set_factors(DType dtype) { a = b = dtype; }
};

class Product {
 public:
  Product() = default;
  // Throws dnnl::error when the library cannot do it.
  explicit Product(const DnnlProductShape& shape);

  // Whether the library multiplies factors of this type as they are.
  static bool native(DType factors);

  size_t scratch_bytes() const { return scratch_bytes_; }
  // The implementation that runs it: "onednn brg:avx512_core".
  const std::string& name() const { return name_; }
  void run(const void* a, const void* b, void* y, std::byte* scratch);

 private:
  DnnlProductShape shape_ = {};
  DnnlCall multiply_;
  PackedProduct own_;
  size_t scratch_bytes_ = 0;
  std::string name_;
};

// The kernel of our own products that goes with the instructions that oneDNN uses.
const MicroKernel& micro_kernel_beside_library();

}  // namespace thimble
