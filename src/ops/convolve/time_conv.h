// dynamic_conv and light_conv (time_conv_geometry.h says what they are), by whether all positions
// share their kernels.
#pragma once

#include "ops/convolve/time_conv_geometry.h"

namespace thimble {

// The record of an op, or of its gradient, that goes by this name.
OpDef time_conv_op(std::string_view summary, bool shared);
OpDef time_conv_backward_op(std::string_view summary, bool shared);

}  // namespace thimble
