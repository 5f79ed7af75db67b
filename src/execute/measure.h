// Measures the live bytes of a program from the addresses that its kernels were handed. Shares
// nothing with the planner's buffers.
#pragma once

#include <array>

#include "execute/program.h"

namespace thimble {

struct Measurement {
  Bytes arena;                          // highest byte handed to a kernel or filled by the caller
  Bytes peak_live;                      // most bytes in use at once
  std::array<Bytes, kRoles> by_role{};  // of peak_live
};

// REQUIRES: the program ran at least one step.
Measurement measure(const Program& program);

}  // namespace thimble
