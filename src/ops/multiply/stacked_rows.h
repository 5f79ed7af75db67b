// All rows of a batch as one matrix.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace thimble {

// [P..., M, K] as [P*M, K]: the same bytes.
inline ValueId stack_rows(Builder& build, ValueId value) {
  const Shape& shape = build.shape(value);
  const std::vector<int64_t> stacked = {shape.product(0, shape.rank() - 1), shape.back()};
  return build.op("reshape", {value}, {{"shape", stacked}});
}

}  // namespace thimble
