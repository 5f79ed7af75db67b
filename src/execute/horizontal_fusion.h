// Horizontal fusion: calls of one batchable kernel are launched together. A call waits for others
// of its kind as long as no call in between touches its bytes.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "execute/streams.h"

namespace thimble {

struct LaunchGroup {
  Kernel* kernel = nullptr;
  std::vector<const KernelArgs*> calls;  // more than one: the kernel is a BatchableKernel
  CallUse use;                           // reads and writes of all of them

  void run() const;
};

// REQUIRES: `singles` have one call each, in the order of the plan. Running the groups in order
// gives the same bits.
std::vector<LaunchGroup> group_launches(std::vector<LaunchGroup> singles);

}  // namespace thimble
