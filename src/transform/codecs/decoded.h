// Attributes of a decoder's result.
#pragma once

#include "transform/codec.h"

namespace thimble {

inline Attrs decoded(const TensorType& type) {
  const auto dims = type.shape.dims();
  return {{"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"dtype", std::string(name_of(type.dtype))}};
}

}  // namespace thimble
