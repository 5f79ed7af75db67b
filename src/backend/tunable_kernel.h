// A kernel with several ways to do its work, of which the backend guesses that the first is the
// fastest. Measured times may know better (execute/costs.h). Variants round differently: which one
// runs is decided before a step is planned.
#pragma once

#include "backend/kernel.h"

namespace thimble {

class TunableKernel : public Kernel {
 public:
  virtual int variants() const = 0;
  virtual int used() const = 0;
  // From now on; `name` and `workspace` become the variant's.
  virtual void use(int variant) = 0;
};

}  // namespace thimble
