// Shared by the pooling kernels: rows of pixels of channels-last images, with the channels
// innermost.
#pragma once

#include "backend/cpu/rows.h"
#include "backend/cpu/sixteen_bit.h"
#include "ops/convolve/pool_geometry.h"

namespace thimble {

// Channels of a pixel in 16 bits that are widened at once.
constexpr int64_t kPoolTile = 256;

// Calls body(first, count) for tiles of channels.
template <class Body>
THIMBLE_INLINE void for_pool_tiles(int64_t channels, const Body& body) {
  for (int64_t c = 0; c < channels; c += kPoolTile) body(c, std::min(kPoolTile, channels - c));
}

// As CpuKernel::make: the threads share out the rows of pixels of the result [N,H,W,C].
template <RowLoop kLoop, RowLoop kNarrow>
std::unique_ptr<Kernel> pooling(const Signature& s) {
  if (!stageable(s.outputs[0])) return nullptr;
  const Shape& y = s.outputs[0].shape;
  const int64_t kernel = s.attrs.integer("kernel");
  return std::make_unique<UnitKernel>(y[0] * y[1], y[2] * y[3] * kernel,
                                      s.outputs[0].dtype == DType::f32 ? kLoop : kNarrow);
}

}  // namespace thimble
