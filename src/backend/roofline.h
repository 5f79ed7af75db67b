// The simplest honest cost model: a kernel takes as long as its arithmetic or its memory traffic,
// whichever is longer, and a fixed launch.
#pragma once

#include <algorithm>

#include "graph/op.h"

namespace thimble {

struct Roofline {
  double flops_per_second = 1;
  double bytes_per_second = 1;
  double launch_seconds = 0;

  double seconds(const Signature& signature) const {
    if (signature.op->view) return 0;
    const Work work = signature.op->work_of(signature);
    return launch_seconds + std::max(work.flops / flops_per_second, work.bytes / bytes_per_second);
  }
};

}  // namespace thimble
