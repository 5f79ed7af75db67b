// What the pooling kernels share: rows of pixels of channels-last images, with the channels innermost.
#pragma once

#include "backend/cpu/rows.h"
#include "ops/convolve/pool_geometry.h"

namespace thimble {

// As CpuKernel::make, in f32: the threads share out the rows of pixels of the result [N,H,W,C].
template <RowLoop kLoop>
std::unique_ptr<Kernel> pooling(const Signature& s) {
  if (s.outputs[0].dtype != DType::f32 || s.outputs[0].elements() == 0) return nullptr;
  const Shape& y = s.outputs[0].shape;
  const int64_t kernel = s.attrs.integer("kernel");
  return std::make_unique<UnitKernel>(y[0] * y[1], y[2] * y[3] * kernel, kLoop);
}

}  // namespace thimble
