// How ops read their inputs, where that is not linear (OpDef::reading).
#pragma once

#include "graph/op.h"

namespace thimble {

// kHow those inputs, linearly the others.
template <Reading kHow, size_t... kInputs>
Reading reads(const Attrs&, size_t input) {
  return ((input == kInputs) || ...) ? kHow : Reading::linear;
}

}  // namespace thimble
