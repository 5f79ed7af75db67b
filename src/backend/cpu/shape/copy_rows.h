// Copies of contiguous rows, the common part of slice, slice_backward, concat and copy.
#pragma once

#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

// `outer` rows of `count` elements, at a distance of from_pitch and to_pitch elements.
struct CopyRows {
  int64_t outer, count, from_pitch, to_pitch;
};

// Rows are copied, or added where they are floats that we stage.
void copy_rows(const CopyRows& rows, DType dtype, const void* from, void* to, bool add);

inline bool can_copy(const Signature& s) {
  return s.outputs[0].elements() > 0 && (s.accumulate == 0 || is_stageable(s.outputs[0].dtype));
}

}  // namespace thimble
