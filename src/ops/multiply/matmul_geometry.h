// The geometry of matmul: y [P..., M, N] = op(a) op(b), P leading axes of a. Row-major.
#pragma once

#include "graph/op.h"

namespace thimble {

struct MatmulGeometry {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
  bool shared;  // one b [K,N] for the whole batch
  Shape y;

  int64_t a_at(int64_t p, int64_t i, int64_t l) const {
    return p * m * k + (transpose_a ? l * m + i : i * k + l);
  }
  int64_t b_at(int64_t p, int64_t l, int64_t j) const {
    return (shared ? 0 : p * k * n) + (transpose_b ? j * k + l : l * n + j);
  }
  double flops() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k); }
};

// Throws UserError naming matmul when a and b do not fit each other.
MatmulGeometry matmul_geometry(const Shape& a, const Shape& b, const Attrs& attrs);

}  // namespace thimble
