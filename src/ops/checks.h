// Checks shared by the shape rules in this folder; all throw UserError beginning with "[op]".
#pragma once

#include "base/error.h"
#include "graph/op.h"

namespace thimble {

inline void check_floating(std::string_view op, std::string_view what, const TensorType& type) {
  if (is_floating(type.dtype)) return;
  user_error("[{}] wants a floating {}, got {}", op, what, to_string(type));
}

inline void check_type(std::string_view op, std::string_view what, const TensorType& got,
                       const TensorType& wanted) {
  if (got == wanted) return;
  user_error("[{}] wants {} {}, got {}", op, what, to_string(wanted), to_string(got));
}

inline void check_floating_rank(std::string_view op, std::string_view what, const TensorType& type,
                                int rank) {
  check_floating(op, what, type);
  if (type.shape.rank() == rank) return;
  user_error("[{}] wants {} with {} axes, got {}", op, what, rank, to_string(type));
}

}  // namespace thimble
