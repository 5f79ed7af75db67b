// What the pooling kernels share: rows of pixels of channels-last images, with the channels innermost.
#pragma once

#include "backend/cpu/rows.h"
#include "ops/convolve/pool_geometry.h"

namespace thimble {

// The threads share out the rows of pixels of `images` [N,H,W,C].
inline std::unique_ptr<Kernel> make_pooling(const Shape& images, const Attrs& attrs, RowLoop loop) {
  const int64_t kernel = attrs.integer("kernel");
  return std::make_unique<UnitKernel>(images[0] * images[1], images[2] * images[3] * kernel, loop);
}

}  // namespace thimble
