// Measurements of a plan while it ran.
#pragma once

#include <vector>

#include "base/number/bytes.h"

namespace thimble {

struct Trace {
  std::vector<double> call_seconds;  // by call of the plan, summed over microbatches
  double seconds = 0;
  Bytes touched;  // end of the highest byte handed to a kernel
};

}  // namespace thimble
