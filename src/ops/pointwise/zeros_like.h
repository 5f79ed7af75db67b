// Zeros for gradients: made where they are read, and not kept as a constant would be.
#pragma once

#include "graph/builder.h"

namespace thimble {

inline ValueId zeros_like(Builder& b, ValueId x) {
  const TensorType type = b.type(x);
  const auto dims = type.shape.dims();
  return b.op("fill", {},
              {{"shape", std::vector<int64_t>(dims.begin(), dims.end())},
               {"value", 0.0},
               {"dtype", std::string(name_of(type.dtype))}});
}

}  // namespace thimble
