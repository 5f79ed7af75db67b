// Steps of a program as launches: nodes of a batchable kernel wait for others of their kind, as long
// as no step in between touches their bytes, and go in one launch.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "execute/streams.h"

namespace thimble {

struct LaunchGroup {
  Kernel* kernel = nullptr;
  std::vector<const KernelArgs*> calls;  // of more than one: the kernel is a BatchableKernel
  CallUse use;                           // of all of them

  void run() const;
};

// `steps` have one call each. The launches give the same bits in their order as the steps in
// theirs.
std::vector<LaunchGroup> group_launches(std::vector<LaunchGroup> steps);

}  // namespace thimble
