// Shared by glu and its gradient: the two halves of a last axis, and the cases that both are
// checked on.
#pragma once

#include <array>

#include "ops/reduce/last_axis.h"
#include "ops/shape/strided.h"

namespace thimble {

// The type of one half of x [...,2C].
inline TensorType half_of(std::string_view op, const TensorType& x) {
  check_rows(op, x);
  const int64_t columns = x.shape.back();
  user_check(columns % 2 == 0, "[{}] wants an even last axis, got {}", op, to_string(x));
  return {with_extent(x.shape, x.shape.rank() - 1, columns / 2), x.dtype};
}

struct GluCase {
  Shape x;
  const char* act;
  Attrs attrs() const { return {{"act", std::string(act)}}; }
};

inline std::array<GluCase, 5> glu_cases() {
  return {{{{5, 14}, "sigmoid"},
           {{2, 3, 64}, "silu"},
           {{2, 3, 10}, "gelu"},
           {{66}, "gelu_tanh"},
           {{7, 2}, "sigmoid"}}};
}

}  // namespace thimble
