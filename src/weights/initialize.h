// First values of persistent tensors, drawn by Philox from the seed and the tensor's name: the same
// whatever the plan, the device or the order.
#pragma once

#include <cstdint>
#include <functional>

#include "execute/program.h"

namespace thimble {

// Fills every persistent value of the program's graph (or those `chosen`) from its Init.
void initialize(Program& program, uint64_t seed, const std::function<bool(ValueId)>& chosen = {});

}  // namespace thimble
