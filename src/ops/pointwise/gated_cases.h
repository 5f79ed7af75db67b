// The cases that gated and its gradient are both checked on.
#pragma once

#include <array>
#include <string>

#include "base/number/shape.h"
#include "graph/attrs.h"

namespace thimble {

struct GatedCase {
  Shape shape;
  const char* act;
  Attrs attrs() const { return {{"act", std::string(act)}}; }
};

inline std::array<GatedCase, 5> gated_cases() {
  return {{{{5, 7}, "sigmoid"},
           {{2, 3, 64}, "silu"},
           {{2, 3, 5}, "gelu"},
           {{33}, "gelu_tanh"},
           {{7, 1}, "silu"}}};
}

}  // namespace thimble
