// A matrix product y [M,N] = op(a) op(b), or added, on oneDNN.
#pragma once

#include "backend/cpu/dnnl.h"

namespace thimble {

struct DnnlProductShape {
  int64_t batch = 1;  // of independent products, one behind the other
  int64_t m, n, k;
  // Stored with rows and columns exchanged.
  bool transpose_a = false, transpose_b = false;
  bool add = false;
};

class Product {
 public:
  Product() = default;
  // Throws dnnl::error when the library cannot do it.
  explicit Product(const DnnlProductShape& shape);

  size_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& implementation() const { return implementation_; }
  void run(const void* a, const void* b, void* y, std::byte* scratch) {
    multiply_.run({a, b, y, scratch});
  }

 private:
  DnnlCall multiply_;
  size_t scratch_bytes_ = 0;
  std::string implementation_;
};

}  // namespace thimble
