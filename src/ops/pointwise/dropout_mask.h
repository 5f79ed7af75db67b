// The random mask of dropout, recomputed wherever it is needed.
#pragma once

#include "base/number/random_stream.h"

namespace thimble {

struct DropoutMask : RandomStream {
  float p;  // probability to drop

  // rng is {seed, step, microbatch}.
  DropoutMask(const int64_t* rng, int64_t stream_number, double drop)
      : RandomStream(rng, stream_number), p(static_cast<float>(drop)) {}

  bool keeps(uint32_t word) const { return uniform_from(word) >= p; }
};

}  // namespace thimble
