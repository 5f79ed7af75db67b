// What slice, slice_backward, concat and copy are made of: rows of neighbours that move together.
#pragma once

#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

// `outer` rows of `count` elements, at a distance of from_pitch and to_pitch elements.
struct CopyRows {
  int64_t outer, count, from_pitch, to_pitch;
};

// f32 rows are copied or added; rows of other dtypes (element_size bytes) are copied.
void copy_rows(const CopyRows& rows, int64_t element_size, const void* from, void* to, bool add);

inline bool can_copy(const Signature& s) {
  return s.outputs[0].elements() > 0 && (s.accumulate == 0 || s.outputs[0].dtype == DType::f32);
}

}  // namespace thimble
