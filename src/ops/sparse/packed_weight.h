// Shared by expand and gather: where the nonzeros of a sparse weight are.
//
//   pool  [ ....... | w00 w01 w02 ... | ....... ]   nonzeros of all sparse weights
//                     ^ first                       this weight's, in the order of its elements
//   mask  one bit per element: nonzero or not (base/number/bits.h)
#pragma once

#include "base/number/bits.h"
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {

inline void check_packed(std::string_view op, const TensorType& pool, const TensorType& first,
                         const TensorType& mask, int64_t elements) {
  check_floating_rank(op, "pool", pool, 1);
  check_type(op, "first", first, {{1}, DType::i64});
  check_type(op, "mask", mask, {{bitmap_bytes(elements)}, DType::u8});
}

}  // namespace thimble
