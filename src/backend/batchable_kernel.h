// A kernel that can run several nodes of its kind in one launch: hundreds of small updates at the
// end of a step take longer to launch than to run.
#pragma once

#include "backend/kernel.h"

namespace thimble {

class BatchableKernel : public Kernel {
 public:
  // Whether nodes of the other kernel can come along.
  virtual bool joins(const BatchableKernel& other) const = 0;
  virtual size_t most_joined() const = 0;
  // REQUIRES: at most most_joined() calls, of kernels that join this one; none writes what another
  // reads or writes. The same bits as one after the other.
  virtual void run_all(std::span<const KernelArgs* const> calls) = 0;
};

}  // namespace thimble
