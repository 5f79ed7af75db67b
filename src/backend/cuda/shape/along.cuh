// Elements that take_along and put_along move as they are, by their size.
#pragma once

#include "backend/cuda/cuda_kernel.h"

namespace thimble {

inline bool is_moved(DType dtype) { return size_of(dtype) == 2 || size_of(dtype) == 4; }

// Calls body(TypeTag<Unit>{}) with an unsigned number of that size. REQUIRES: is_moved(dtype).
template <class Body>
void with_moved_unit(DType dtype, const Body& body) {
  if (size_of(dtype) == 2) {
    body(TypeTag<uint16_t>{});
  } else {
    body(TypeTag<uint32_t>{});
  }
}

}  // namespace thimble
