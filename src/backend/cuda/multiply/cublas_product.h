// A product of cuBLASLt's, bound to one of its algorithms: y [P,M,N] = op(a) op(b), or added into
// y or to another matrix like it, row-major; sums have one order, in scratch of known size.
#pragma once

#include <vector>

#include "backend/cuda/device.h"
#include "base/number/bytes.h"
#include "base/number/dtype.h"

namespace thimble {

struct ProductShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // a is stored [K,M], b [N,K]
  // Of one product, equal parts of the depth K, each with a result of its own: y is [parts,M,N].
  int64_t parts = 1;
  int64_t part = 0;  // the depth of each, where they end before K does; 0: K / parts
  int64_t alignment = kArenaAlignment;  // in bytes, of the addresses of all matrices
  // Numbers from one row of a, or of y, to the next; 0: rows follow each other.
  int64_t pitch_a = 0, pitch_y = 0;
  bool bias = false;  // a number for each of the N columns is added before y is rounded

  int64_t part_depth() const { return part > 0 ? part : k / parts; }
};

// The alignment of places that are multiples of `bytes` into a buffer of an arena.
constexpr int64_t alignment_of_multiples(int64_t bytes) {
  int64_t alignment = kArenaAlignment;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

// The alignment of what the parts of a product read, and of their f32 results, where the whole has
// that of its shape.
int64_t alignment_in_parts(const ProductShape& shape, DType factors);

class CublasProduct {
 public:
  // `factors` is the dtype of a and b, `result` that of y. `most_scratch`: no more than that.
  // `most_guesses`: so many algorithms to choose from, the library's best guess first. UserError of
  // scratch() and run() where it has none.
  CublasProduct(CudaDevice& device, const ProductShape& shape, DType factors, DType result,
                bool add, Bytes most_scratch, int most_guesses = 1);
  ~CublasProduct();
  CublasProduct(const CublasProduct&) = delete;
  CublasProduct& operator=(const CublasProduct&) = delete;

  int guesses() const { return static_cast<int>(algorithms_.size()); }
  // From now on.
  void use(int guess) { used_ = static_cast<size_t>(guess); }

  Bytes scratch() const;
  void run(const void* a, const void* b, void* y, std::byte* scratch) const {
    run(a, b, nullptr, y, y, scratch);
  }
  // With a bias where the shape has one; with `add`, y is the sum of the product and `addend`,
  // which may be y.
  void run(const void* a, const void* b, const void* bias, const void* addend, void* y,
           std::byte* scratch) const;

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t config;
    size_t scratch;
  };

  void find_algorithms(Bytes most_scratch, int64_t alignment, int most);
  const Algorithm& algorithm() const;

  CudaDevice& device_;
  const float add_;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, y_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  std::vector<Algorithm> algorithms_;
  size_t used_ = 0;
};

// Scratch that is little beside the matrices.
Bytes scratch_limit(const ProductShape& shape, DType dtype);

}  // namespace thimble
