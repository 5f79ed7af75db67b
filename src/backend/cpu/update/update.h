// The common part of optimizer updates (ops/update/update_layout.h): the factor of the gradient,
// skipped steps, and the rounding of 16-bit results.
#pragma once

#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {

// How 16-bit results are rounded beside to nearest, each as a Finish of a StagedLoop.
// At random, as the op's key and stream say. REQUIRES: attr `rounding` is stochastic.
void finish_stochastically(const KernelArgs& args, size_t output, const float* room, int64_t first,
                           int64_t count);
// The last output is what the rounding of output 0 left over; the loop writes the same wide weight
// to both.
void finish_compensated(const KernelArgs& args, size_t output, const float* room, int64_t first,
                        int64_t count);

// The factor that a loop multiplies gradients by. It lies behind the op's own inputs.
THIMBLE_INLINE float gradient_factor(const KernelArgs& args, size_t own_inputs) {
  return args.attrs->integer("scaled", 0) != 0 ? *args.inputs[own_inputs].as<const float>() : 1.0f;
}

}  // namespace thimble
