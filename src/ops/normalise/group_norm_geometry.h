// The geometry shared by group_norm and its gradient.
#pragma once

#include <array>

#include "ops/normalise/group_statistics.h"
#include "ops/pointwise/activation.h"
#include "ops/reduce/last_axis.h"

namespace thimble {

// Reads attrs groups and act. Throws UserError naming `op` when they do not fit x [N,H,W,C].
inline GroupGeometry group_geometry(std::string_view op, const TensorType& x, const Attrs& attrs) {
  check_floating_rank(op, "images [N,H,W,C]", x, 4);
  const int64_t groups = attrs.integer("groups");
  if (groups < 1 || x.shape[3] % groups != 0) {
    user_error("[{}] {} channels do not go into {} groups", op, x.shape[3], groups);
  }
  return {x.shape[0], x.shape[1] * x.shape[2], x.shape[3], groups, fuses_relu(op, attrs)};
}

inline TensorType group_statistics_type(const GroupGeometry& g, DType dtype) {
  return {{g.batch, g.groups}, statistics_dtype(dtype)};
}

struct GroupNormCase {
  Shape x;
  int64_t groups;
  const char* act;
  Attrs attrs() const { return {{"groups", groups}, {"act", std::string(act)}}; }
};

// The cases both ops are checked on: one group, one channel per group, odd extents.
inline std::array<GroupNormCase, 4> group_norm_cases() {
  return {{{{2, 3, 5, 6}, 2, "none"},
           {{3, 2, 3, 4}, 1, "relu"},
           {{2, 3, 3, 3}, 3, "relu"},
           {{2, 4, 4, 32}, 8, "relu"}}};
}

}  // namespace thimble
