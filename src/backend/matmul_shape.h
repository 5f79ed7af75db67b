// matmul as the products that libraries know: one matrix for a whole batch is one product of all
// rows.
#pragma once

#include "backend/kernel.h"

namespace thimble {

// ProductShape: batch, m, n, k, transpose_a and transpose_b, in a library's own struct.
template <class ProductShape>
ProductShape matmul_shape(const Signature& s) {
  const Shape& a = s.inputs[0].shape;
  const Shape& y = s.outputs[0].shape;
  const bool shared = s.inputs[1].shape.rank() == 2;
  const int64_t leading = a.product(0, a.rank() - 2);
  ProductShape shape = {};
  shape.transpose_a = s.attrs.integer("transpose_a", 0) != 0;
  shape.transpose_b = s.attrs.integer("transpose_b", 0) != 0;
  shape.batch = shared ? 1 : leading;
  shape.m = shared ? leading * y.back(2) : y.back(2);
  shape.n = y.back(1);
  shape.k = shape.transpose_a ? a.back(2) : a.back(1);
  return shape;
}

}  // namespace thimble
